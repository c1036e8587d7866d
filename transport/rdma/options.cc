#include "transport/rdma/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "coflow/directive.h"
#include "transport/codec.h"
#include "transport/rdma/wire.h"

namespace weir::transport {
namespace {

/// Sets `value` from a variable that is there and not empty.
template <typename T>
Status Number(const char* name, int least, int most, T* value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return Status::Ok();
  const std::string_view whole(text);
  int number = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (error != std::errc() || end != whole.data() + whole.size() || number < least || number > most) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: found \"{}\", allowed: {} to {}", name, whole, least, most));
  }
  *value = static_cast<T>(number);
  return Status::Ok();
}

void Text(const char* name, std::string* value) {
  if (const char* text = std::getenv(name)) *value = text;
}

template <typename T>
Status Within(const char* what, T found, T least, T most) {
  if (found >= least && found <= most) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: {} to {}", what, found, least, most));
}

}  // namespace

Result<RdmaOptions> RdmaOptionsFromEnvironment() {
  RdmaOptions options;
  Text("NCCL_IB_HCA", &options.devices);
  Text("NCCL_IB_ADDR_RANGE", &options.subnet);
  Text("NCCL_IB_ADDR_FAMILY", &options.family);
  Text("NCCL_SOCKET_IFNAME", &options.interfaces);
  for (const Status& status :
       {Number("NCCL_IB_GID_INDEX", -1, 255, &options.gid_index),
        Number("NCCL_IB_ROCE_VERSION_NUM", 1, 2, &options.roce_version),
        Number("NCCL_IB_SL", 0, 15, &options.service_level), Number("NCCL_IB_TC", 0, 255, &options.traffic_classes[0]),
        Number("NCCL_IB_TIMEOUT", 1, 31, &options.timeout), Number("NCCL_IB_RETRY_CNT", 0, 7, &options.retry_count),
        Number("NCCL_IB_PKEY", 0, 65535, &options.pkey_index),
        Number("NCCL_IB_QPS_PER_CONNECTION", 1, static_cast<int>(rdma::kMaxQueuePairs), &options.queue_pairs)}) {
    if (!status.ok()) return tl::unexpected(status);
  }
  return options;
}

Status CheckRdmaOptions(const RdmaOptions& options) {
  if (options.identity.size() >= kIdentityBytes ||
      std::any_of(options.identity.begin(), options.identity.end(), [](char c) { return c <= ' ' || c >= 127; })) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("identity: found \"{}\", allowed: up to 31 printable characters, no blanks", options.identity));
  }
  if (!options.family.empty() && options.family != "AF_INET" && options.family != "AF_INET6") {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("family of addresses: found \"{}\", allowed: AF_INET, AF_INET6, or nothing", options.family));
  }
  const std::size_t classes = options.traffic_classes.size();
  for (const Status& status :
       {Within<std::size_t>("traffic classes", classes, 1, kQueueLevels),
        Within<unsigned>("version of RoCE", options.roce_version, 1, 2),
        Within<unsigned>("service level", options.service_level, 0, 15),
        Within<unsigned>("timeout", options.timeout, 1, 31), Within<unsigned>("retry count", options.retry_count, 0, 7),
        Within<std::size_t>("queue pairs times traffic classes", options.queue_pairs * classes, 1,
                            rdma::kMaxQueuePairs),
        Within<Bytes>("stripe size in bytes", options.stripe_bytes, 4096, Bytes{1} << 30),
        Within<Bytes>("window in bytes", options.window_bytes, 4096, Bytes{1} << 40),
        Within<Nanoseconds>("window in us", options.window_time / kMicrosecond, 10, 10'000'000),
        Within<unsigned>("requests", options.requests, 1, rdma::kMaxRequests),
        Within<Nanoseconds>("bound on a dead link in ms", options.dead_after / kMillisecond, 200, 3'600'000)}) {
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

}  // namespace weir::transport
