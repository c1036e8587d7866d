#pragma once

#include <cstdint>
#include <unordered_map>

#include "transport/transport.h"

namespace weir::transport {

/// The registrations of a channel whose device reads and writes host memory as it is: counted, so that a registration
/// that is given back twice or never is noticed, and otherwise without effect. At most kMaxRegistrations.
class HostMemory {
 public:
  static constexpr std::size_t kMaxRegistrations = 1u << 20;

  Result<MemoryId> Register(const void* data, Bytes size, MemoryKind kind);
  Status Deregister(MemoryId memory);
  std::size_t size() const { return ranges_.size(); }

 private:
  std::uint64_t last_ = 0;
  std::unordered_map<MemoryId, Bytes> ranges_;
};

}  // namespace weir::transport
