#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "transport/dpdk/packet_port.h"

namespace weir::transport::dpdk {

/// What happens to frames that are sent, in thousandths of them.
struct Impairment {
  std::uint32_t lose_permille = 0;
  std::uint32_t double_permille = 0;
  /// These wait until 1 to 32 later frames have gone.
  std::uint32_t reorder_permille = 0;
  std::uint64_t seed = 1;

  bool any() const { return lose_permille + double_permille + reorder_permille > 0; }
};

/// A port that loses, doubles and reorders what it sends, from a seed: to see on a real device what a bad path does.
/// The same calls in the same order meet the same fate. Owns nothing; `port` outlives it. Threads: as the port. No
/// allocation after it is made.
class ImpairedPort final : public PacketPort {
 public:
  ImpairedPort(PacketPort* port, const Impairment& impairment);

  MacAddress mac() const noexcept override { return port_.mac(); }
  std::size_t frame_bytes() const noexcept override { return port_.frame_bytes(); }
  std::byte* Reserve() noexcept override;
  void Commit(std::size_t size) noexcept override;
  void Flush() noexcept override;
  std::size_t Receive(std::span<std::span<const std::byte>> frames) noexcept override { return port_.Receive(frames); }

 private:
  static constexpr std::size_t kHeld = 32;
  static constexpr std::uint32_t kFlushesMax = 256;  ///< A frame waits no longer, when nothing else is sent.

  struct Held {
    std::vector<std::byte> frame;
    std::size_t size = 0;  ///< 0: free.
    std::uint32_t later = 0;
    std::uint32_t flushes = 0;
  };

  bool Chance(std::uint32_t permille) noexcept { return permille > 0 && random_() % 1000 < permille; }
  bool Hold(std::size_t size) noexcept;
  void SendCopy(std::span<const std::byte> frame) noexcept;
  void Age(std::uint32_t frames, std::uint32_t flushes) noexcept;

  PacketPort& port_;
  Impairment impairment_;
  std::mt19937_64 random_;
  std::byte* reserved_ = nullptr;
  std::vector<std::byte> copy_;
  std::array<Held, kHeld> held_;
  std::size_t held_count_ = 0;
};

}  // namespace weir::transport::dpdk
