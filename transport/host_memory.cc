#include "transport/host_memory.h"

#include <fmt/format.h>

namespace weir::transport {

Result<MemoryId> HostMemory::Register(const void* data, Bytes size, MemoryKind kind) {
  if (kind != MemoryKind::kHost) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("memory of kind {}: this backend takes host memory (kind 1)", static_cast<int>(kind)));
  }
  if (data == nullptr || size == 0) {
    return Error(StatusCode::kInvalidArgument, "cannot register an empty range of memory");
  }
  if (ranges_.size() >= kMaxRegistrations) {
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format("{} ranges of memory are registered on this channel, more are not allowed", ranges_.size()));
  }
  const MemoryId id{++last_};
  ranges_.emplace(id, size);
  return id;
}

Status HostMemory::Deregister(MemoryId memory) {
  if (ranges_.erase(memory) == 0) {
    return Status(StatusCode::kNotFound, fmt::format("memory {} is not registered on this channel", memory.value));
  }
  return Status::Ok();
}

}  // namespace weir::transport
