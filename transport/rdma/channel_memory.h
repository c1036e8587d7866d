#pragma once

#include <cstdint>
#include <vector>

#include "coflow/status.h"
#include "transport/rdma/registrations.h"
#include "transport/transport.h"

namespace weir::transport::rdma {

/// What a channel's owner registered: ids, and the ranges that they stand for. Owned by a channel, on its thread. Find
/// and Borrow are what runs for each message; the first neither allocates nor locks.
class ChannelMemory {
 public:
  ChannelMemory(Registrations* registrations, Registrations::Use use) : registrations_(*registrations), use_(use) {}
  ~ChannelMemory();
  ChannelMemory(const ChannelMemory&) = delete;
  ChannelMemory& operator=(const ChannelMemory&) = delete;

  /// As Channel::Register and its like.
  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind);
  Result<MemoryId> RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size);
  Status Deregister(MemoryId memory);

  /// Null when the id stands for nothing, or not for all of these bytes.
  const Registrations::Entry* Find(MemoryId memory, const void* data, Bytes size) const noexcept;
  /// Registers for the time of one request what has no id; null when the device refuses. Costs a system call.
  Registrations::Entry* Borrow(const void* data, Bytes size) noexcept;
  void GiveBack(Registrations::Entry* entry) noexcept { registrations_.Release(entry); }

 private:
  /// An id is the index of its entry, and how often that was used before.
  struct Held {
    Registrations::Entry* entry = nullptr;
    std::uint32_t uses = 0;
  };

  Result<MemoryId> Add(Registrations::Entry* entry);
  static std::uint64_t IndexOf(MemoryId memory) { return (memory.value & 0xffffffff) - 1; }

  Registrations& registrations_;
  Registrations::Use use_;
  std::vector<Held> held_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weir::transport::rdma
