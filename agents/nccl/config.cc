#include "agents/nccl/config.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "agents/client/attachment.h"
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

}  // namespace

Result<PluginConfig> ConfigFromEnvironment() {
  PluginConfig config;
  config.disabled = IsSet("WEIR_DISABLE");
  config.tcp = transport::TcpOptionsFromEnvironment();
  const char* backend = std::getenv("WEIR_TRANSPORT");
  if (backend != nullptr && *backend != '\0' && std::strcmp(backend, "tcp") != 0) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("WEIR_TRANSPORT: found \"{}\", allowed: tcp. Unset it, or name tcp", backend));
  }
  long streams = config.tcp.streams;
  long stripe_kb = static_cast<long>(config.tcp.stripe_bytes / 1024);
  long dead_after_ms = static_cast<long>(config.tcp.dead_after / kMillisecond);
  long connect_within_ms = static_cast<long>(config.tcp.connect_within / kMillisecond);
  long traffic_class = config.tcp.traffic_class;
  long receives = config.receives;
  long hold_max_ms = static_cast<long>(config.hold_max / kMillisecond);
  struct Number {
    const char* variable;
    long least;
    long most;
    long* out;
  };
  for (const Number& number : {Number{"WEIR_NCCL_STREAMS", 1, transport::kMaxStreams, &streams},
                               Number{"WEIR_NCCL_STRIPE_KB", 4, 1 << 20, &stripe_kb},
                               Number{"WEIR_NCCL_DEAD_AFTER_MS", 10, 3'600'000, &dead_after_ms},
                               Number{"WEIR_NCCL_CONNECT_WITHIN_MS", 10, 3'600'000, &connect_within_ms},
                               Number{"WEIR_NCCL_TRAFFIC_CLASS", 0, 255, &traffic_class},
                               Number{"WEIR_NCCL_HOLD_MAX_MS", 1, 60'000, &hold_max_ms},
                               Number{"WEIR_NCCL_RECEIVES", 1, static_cast<long>(transport::kMaxSlots), &receives}}) {
    if (Status status = ReadNumber(number.variable, number.least, number.most, number.out); !status.ok()) {
      return tl::unexpected(status);
    }
  }
  config.tcp.streams = static_cast<std::uint32_t>(streams);
  config.tcp.stripe_bytes = static_cast<Bytes>(stripe_kb) * 1024;
  config.tcp.dead_after = dead_after_ms * kMillisecond;
  config.tcp.connect_within = connect_within_ms * kMillisecond;
  config.tcp.traffic_class = static_cast<int>(traffic_class);
  config.hold_max = hold_max_ms * kMillisecond;
  if (Status status = ReadClassFrom(&config.class_from); !status.ok()) return tl::unexpected(status);
  config.managed = client::RequestFromEnvironment(&config.request);
  const char* socket = std::getenv("WEIR_AGENT_SOCKET");
  config.agent_socket = socket != nullptr && *socket != '\0' ? socket : "/run/weir/agent.sock";
  config.manages_loopback = IsSet("WEIR_MANAGE_LOOPBACK");
  config.receives = static_cast<std::uint32_t>(receives);
  const char* report = std::getenv("WEIR_NCCL_REPORT");
  if (report != nullptr && *report != '\0') config.report = report;
  return config;
}

}  // namespace weir::nccl
