#include "agents/nccl/config.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "agents/client/attachment.h"
#include "coflow/job.h"
#include "transport/dpdk/settings.h"
#include "transport/key_values.h"
#include "transport/transport.h"

namespace weir::nccl {
namespace {

Status ReadNumber(const char* variable, long least, long most, long* out) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return Status::Ok();
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < least || value > most) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: found \"{}\", allowed: {} to {}", variable, text, least, most));
  }
  *out = value;
  return Status::Ok();
}

Status ReadClassFrom(ClassFrom* out) {
  const char* text = std::getenv("WEIR_NCCL_CLASS_FROM");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "directive") == 0) return Status::Ok();
  if (std::strcmp(text, "application") == 0) {
    *out = ClassFrom::kApplication;
  } else if (std::strcmp(text, "environment") == 0) {
    *out = ClassFrom::kEnvironment;
  } else {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("WEIR_NCCL_CLASS_FROM: found \"{}\", allowed: directive, application, environment", text));
  }
  return Status::Ok();
}

bool IsSet(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

/// Which one is used, and what each is told by variables of its own.
Status ReadTransport(PluginConfig* config) {
  const char* found = std::getenv("WEIR_TRANSPORT");
  const std::string_view name = found == nullptr || *found == '\0' ? "auto" : found;
  constexpr std::array<std::string_view, 4> kNames{"auto", "tcp", "rdma", "dpdk"};
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("WEIR_TRANSPORT: found \"{}\", allowed: {}", name, fmt::join(kNames, ", ")));
  }
  config->transport = static_cast<TransportName>(at - kNames.begin());
  config->tcp = transport::TcpOptionsFromEnvironment();
  auto rdma = transport::RdmaOptionsFromEnvironment();
  if (!rdma) return rdma.error();
  config->rdma = std::move(*rdma);
  config->rdma_disabled = IsSet("NCCL_IB_DISABLE");
  const char* port = std::getenv("WEIR_DPDK");
  if (port == nullptr || *port == '\0') return Status::Ok();
  const auto settings = transport::KeyValues::Parse("WEIR_DPDK", port);
  if (!settings) return settings.error();
  auto dpdk = transport::DpdkOptionsFrom(*settings);
  if (!dpdk) return dpdk.error();
  config->dpdk = std::move(*dpdk);
  return Status::Ok();
}

/// 0: each transport's own default.
void Tell(long streams, Bytes stripe_bytes, Nanoseconds dead_after, Nanoseconds connect_within, PluginConfig* config) {
  config->tcp.traffic_class = config->traffic_class;
  if (config->traffic_class >= 0) {
    config->rdma.traffic_classes = {static_cast<std::uint8_t>(config->traffic_class)};
  }
  const auto tell = [&](auto* options) {
    options->dead_after = dead_after;
    options->connect_within = connect_within;
    options->requests = kTransfersMax;
  };
  tell(&config->tcp);
  tell(&config->rdma);
  if (config->dpdk) tell(&config->dpdk->endpoint);
  if (stripe_bytes > 0) config->tcp.stripe_bytes = config->rdma.stripe_bytes = stripe_bytes;
  if (streams == 0) return;
  config->tcp.streams = config->rdma.queue_pairs = static_cast<std::uint32_t>(streams);
  if (config->dpdk) config->dpdk->endpoint.paths = static_cast<std::uint32_t>(streams);
}

struct Number {
  const char* variable;
  long least;
  long most;
  long* out;
};

/// The same for all transports, as far as they have it; those of NCCL's for one are read before and give way.
Status ReadNumbers(PluginConfig* config) {
  long streams = 0;
  long stripe_kb = 0;
  long dead_after_ms = static_cast<long>(config->tcp.dead_after / kMillisecond);
  long connect_within_ms = static_cast<long>(config->tcp.connect_within / kMillisecond);
  long traffic_class = -1;
  long receives = config->receives;
  long hold_max_ms = static_cast<long>(config->hold_max / kMillisecond);
  for (const Number& number : {Number{"WEIR_NCCL_STREAMS", 1, transport::kMaxStreams, &streams},
                               Number{"WEIR_NCCL_STRIPE_KB", 4, 1 << 20, &stripe_kb},
                               Number{"WEIR_NCCL_DEAD_AFTER_MS", 200, 3'600'000, &dead_after_ms},
                               Number{"WEIR_NCCL_CONNECT_WITHIN_MS", 10, 3'600'000, &connect_within_ms},
                               Number{"WEIR_NCCL_TRAFFIC_CLASS", 0, 255, &traffic_class},
                               Number{"WEIR_NCCL_HOLD_MAX_MS", 1, 60'000, &hold_max_ms},
                               Number{"WEIR_NCCL_RECEIVES", 1, static_cast<long>(transport::kMaxSlots), &receives}}) {
    if (Status status = ReadNumber(number.variable, number.least, number.most, number.out); !status.ok()) return status;
  }
  config->receives = static_cast<std::uint32_t>(receives);
  config->hold_max = hold_max_ms * kMillisecond;
  config->traffic_class = static_cast<int>(traffic_class);
  Tell(streams, static_cast<Bytes>(stripe_kb) * 1024, dead_after_ms * kMillisecond, connect_within_ms * kMillisecond,
       config);
  return Status::Ok();
}

/// The agent would be told less than the variable says.
Status CheckLength(const char* variable, std::size_t most) {
  const char* text = std::getenv(variable);
  const std::size_t length = text == nullptr ? 0 : std::strlen(text);
  if (length <= most) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: found {} bytes, allowed: at most {}", variable, length, most));
}

Status CheckClass() {
  const char* text = std::getenv("WEIR_CLASS");
  if (text == nullptr) return Status::Ok();
  auto known = ParseJobClass(text);
  if (known) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "WEIR_CLASS: " + known.error().message());
}

Status CheckWeight() {
  const char* text = std::getenv("WEIR_WEIGHT");
  if (text == nullptr || *text == '\0') return Status::Ok();
  char* end = nullptr;
  const double weight = std::strtod(text, &end);
  if (end != text && *end == '\0' && weight >= 0 && weight <= 1e6) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, fmt::format("WEIR_WEIGHT: found \"{}\", allowed: 0 to 1000000", text));
}

Status CheckJob(const PluginConfig& config) {
  long gpus = 0;
  for (Status status : {CheckLength("WEIR_JOB", sizeof config.request.job - 1),
                        CheckLength("WEIR_TENANT", sizeof config.request.tenant - 1),
                        CheckLength("WEIR_AGENT_SOCKET", sizeof(sockaddr_un::sun_path) - 1), CheckClass(),
                        CheckWeight(), ReadNumber("WEIR_GPUS", 0, 1'000'000, &gpus)}) {
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

/// Who the process works for, and where its agent is. What would mislead the agent is no reason for the job to lose its
/// network.
void ReadJob(PluginConfig* config) {
  config->managed = client::RequestFromEnvironment(&config->request);
  const char* path = std::getenv("WEIR_AGENT_SOCKET");
  config->agent_socket = path != nullptr && *path != '\0' ? path : "/run/weir/agent.sock";
  config->manages_loopback = IsSet("WEIR_MANAGE_LOOPBACK");
  if (!config->managed) return;
  if (const Status status = CheckJob(*config); !status.ok()) {
    config->managed = false;
    config->warnings.push_back(status.message() + "; until that is mended this process is not managed by an agent");
  }
}

/// Of ours by their beginning, and none that is read: most likely a slip of the pen.
void NoteUnknownVariables(std::vector<std::string>* warnings) {
  constexpr std::array<std::string_view, 11> kKnown{"STREAMS",    "STRIPE_KB",   "RECEIVES",      "TRAFFIC_CLASS",
                                                    "CLASS_FROM", "HOLD_MAX_MS", "DEAD_AFTER_MS", "CONNECT_WITHIN_MS",
                                                    "GPU_MEMORY", "PROFILER",    "REPORT"};
  constexpr std::string_view kBegin = "WEIR_NCCL_";
  std::string unknown;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    std::string_view name = *each;
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kBegin)) continue;
    if (std::find(kKnown.begin(), kKnown.end(), name.substr(kBegin.size())) != kKnown.end()) continue;
    unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", name);
  }
  if (unknown.empty()) return;
  warnings->push_back(
      fmt::format("{} is not read; those that begin so are WEIR_NCCL_{}", unknown, fmt::join(kKnown, ", WEIR_NCCL_")));
}

}  // namespace

Result<PluginConfig> ConfigFromEnvironment() {
  PluginConfig config;
  config.disabled = IsSet("WEIR_DISABLE");
  if (Status status = ReadTransport(&config); !status.ok()) return tl::unexpected(status);
  if (Status status = ReadNumbers(&config); !status.ok()) return tl::unexpected(status);
  if (Status status = ReadClassFrom(&config.class_from); !status.ok()) return tl::unexpected(status);
  ReadJob(&config);
  NoteUnknownVariables(&config.warnings);
  config.gpu_memory =
      IsSet("WEIR_NCCL_GPU_MEMORY") && (std::getenv("NCCL_DMABUF_ENABLE") == nullptr || IsSet("NCCL_DMABUF_ENABLE"));
  const char* report = std::getenv("WEIR_NCCL_REPORT");
  if (report != nullptr && *report != '\0') config.report = report;
  return config;
}

}  // namespace weir::nccl
