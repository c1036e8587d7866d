#include "transport/rdma/channel_memory.h"

#include <fmt/format.h>

namespace weir::transport::rdma {

ChannelMemory::~ChannelMemory() {
  for (const Held& held : held_) {
    if (held.entry != nullptr) registrations_.Release(held.entry);
  }
}

Result<MemoryId> ChannelMemory::Register(void* data, Bytes size, MemoryKind kind) {
  if (kind != MemoryKind::kHost) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("memory of kind {}: host memory is taken as it is (kind 1), that of GPUs by DMA-BUF",
                             static_cast<int>(kind)));
  }
  if (data == nullptr || size == 0) {
    return Error(StatusCode::kInvalidArgument, "cannot register an empty range of memory");
  }
  const auto entry = registrations_.Hold(data, size, use_);
  return entry ? Add(*entry) : tl::unexpected(entry.error());
}

Result<MemoryId> ChannelMemory::RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size) {
  if (size == 0) return Error(StatusCode::kInvalidArgument, "cannot register an empty range of memory");
  const auto entry = registrations_.HoldDmaBuf(fd, offset, data, size, use_);
  return entry ? Add(*entry) : tl::unexpected(entry.error());
}

Result<MemoryId> ChannelMemory::Add(Registrations::Entry* entry) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(held_.size()));
    held_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  held_[index].entry = entry;
  return MemoryId{(std::uint64_t{held_[index].uses} << 32) | (index + std::uint64_t{1})};
}

Status ChannelMemory::Deregister(MemoryId memory) {
  const std::uint64_t index = IndexOf(memory);
  if (index >= held_.size() || held_[index].entry == nullptr || held_[index].uses != memory.value >> 32) {
    return Status(StatusCode::kNotFound, fmt::format("memory {} is not registered on this channel", memory.value));
  }
  registrations_.Release(held_[index].entry);
  held_[index].entry = nullptr;
  held_[index].uses++;
  free_.push_back(static_cast<std::uint32_t>(index));
  return Status::Ok();
}

const Registrations::Entry* ChannelMemory::Find(MemoryId memory, const void* data, Bytes size) const noexcept {
  const std::uint64_t index = IndexOf(memory);
  if (index >= held_.size() || held_[index].uses != memory.value >> 32) return nullptr;
  const Registrations::Entry* entry = held_[index].entry;
  const auto begin = reinterpret_cast<std::uint64_t>(data);
  if (entry == nullptr || begin < entry->begin || begin > entry->end || size > entry->end - begin) return nullptr;
  return entry;
}

Registrations::Entry* ChannelMemory::Borrow(const void* data, Bytes size) noexcept {
  const auto entry = registrations_.Hold(data, size, use_);
  return entry ? *entry : nullptr;
}

}  // namespace weir::transport::rdma
