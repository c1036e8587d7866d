#include "transport/dpdk/impaired_port.h"

#include <algorithm>
#include <cstring>

namespace weir::transport::dpdk {

ImpairedPort::ImpairedPort(PacketPort* port, const Impairment& impairment)
    : port_(*port), impairment_(impairment), random_(impairment.seed), copy_(port->frame_bytes()) {
  for (Held& held : held_) held.frame.resize(port->frame_bytes());
}

std::byte* ImpairedPort::Reserve() noexcept {
  return reserved_ = port_.Reserve();
}

void ImpairedPort::Commit(std::size_t size) noexcept {
  // What is not committed is reserved again: that is how a frame is lost.
  const bool lost = Chance(impairment_.lose_permille);
  const bool twice = Chance(impairment_.double_permille);
  const bool waits = Chance(impairment_.reorder_permille);
  if (twice) std::memcpy(copy_.data(), reserved_, size);
  if (!lost && !(waits && Hold(size))) port_.Commit(size);
  Age(1, 0);
  if (twice) SendCopy(std::span(copy_).first(size));
}

void ImpairedPort::Flush() noexcept {
  Age(0, 1);
  port_.Flush();
}

/// Keeps the reserved frame for later, if there is room.
bool ImpairedPort::Hold(std::size_t size) noexcept {
  const auto free = std::find_if(held_.begin(), held_.end(), [](const Held& one) { return one.size == 0; });
  if (free == held_.end()) return false;
  std::memcpy(free->frame.data(), reserved_, size);
  free->size = size;
  free->later = 2 + static_cast<std::uint32_t>(random_() % kHeld);
  free->flushes = kFlushesMax;
  held_count_++;
  return true;
}

/// Lost when the port has no room, as it would be in any queue on the way.
void ImpairedPort::SendCopy(std::span<const std::byte> frame) noexcept {
  std::byte* room = port_.Reserve();
  if (room == nullptr) return;
  std::memcpy(room, frame.data(), frame.size());
  port_.Commit(frame.size());
}

void ImpairedPort::Age(std::uint32_t frames, std::uint32_t flushes) noexcept {
  if (held_count_ == 0) return;
  for (Held& held : held_) {
    if (held.size == 0) continue;
    held.later -= std::min(held.later, frames);
    held.flushes -= std::min(held.flushes, flushes);
    if (held.later > 0 && held.flushes > 0) continue;
    SendCopy(std::span(held.frame).first(held.size));
    held.size = 0;
    held_count_--;
  }
}

}  // namespace weir::transport::dpdk
