#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "transport/clock.h"
#include "transport/dpdk/frame.h"
#include "transport/dpdk/packet_port.h"

namespace weir::transport::dpdk {

/// What goes wrong on a SimulatedWire, and how often. Chances are 0 .. 1.
struct WireOptions {
  std::uint64_t seed = 1;
  double loss = 0;
  double duplication = 0;
  double damage = 0;  ///< One bit of the frame is turned.
  /// Each frame takes a time between the two, drawn on its own: that is also what reorders them.
  Nanoseconds delay_min = 10 * kMicrosecond;
  Nanoseconds delay_max = 10 * kMicrosecond;
  std::size_t frame_bytes = 1514;
  BytesPerSecond rate = 0;  ///< Of each direction; 0: no limit.
  Bytes queue = 1 << 20;    ///< In front of the limit; what comes when it is full is lost.
  Bytes mark_above = 0;     ///< Frames that find so much in the queue are marked (ECN); 0: never.
};

/// A cable with a port at each end, on a clock that the test moves: loses, delays, reorders, doubles, damages, and can
/// be cut, all from one seed. One thread.
class SimulatedWire {
 public:
  SimulatedWire(const WireOptions& options, const Clock* clock)
      : options_(options), clock_(*clock), random_(options.seed), ports_{Port(this, 0), Port(this, 1)} {}
  SimulatedWire(const SimulatedWire&) = delete;
  SimulatedWire& operator=(const SimulatedWire&) = delete;

  PacketPort* port(std::size_t end) { return &ports_[end]; }
  void Cut(bool cut) { cut_ = cut; }
  /// Called when the other end received and this one has not for a millisecond, as a thread of its own would.
  void Keep(std::size_t end, std::function<void()> serve) { ports_[end].serve = std::move(serve); }
  /// Sees each frame before it is sent.
  std::function<void(std::span<const std::byte>)> tap;
  std::uint64_t sent() const { return sent_; }
  /// A frame that nobody sent arrives at `end`.
  void Inject(std::size_t end, std::span<const std::byte> frame) {
    ports_[end].coming.emplace(clock_.Now(), std::vector<std::byte>(frame.begin(), frame.end()));
  }

 private:
  struct Port final : PacketPort {
    Port(SimulatedWire* owner, std::size_t number) : wire(*owner), end(number) {
      buffer.resize(owner->options_.frame_bytes);
    }
    MacAddress mac() const noexcept override { return {std::byte{2}, {}, {}, {}, {}, static_cast<std::byte>(end + 1)}; }
    std::size_t frame_bytes() const noexcept override { return buffer.size(); }
    std::byte* Reserve() noexcept override { return buffer.data(); }
    void Commit(std::size_t size) noexcept override { wire.Carry(1 - end, std::span(buffer).first(size)); }
    void Flush() noexcept override {}
    std::size_t Receive(std::span<std::span<const std::byte>> frames) noexcept override {
      const Nanoseconds now = wire.clock_.Now();
      received_at = now;
      Port& other = wire.ports_[1 - end];
      if (other.serve && now - other.received_at >= kMillisecond) other.serve();
      std::size_t count = 0;
      held.clear();
      while (count < frames.size() && !coming.empty() && coming.begin()->first <= now) {
        held.push_back(std::move(coming.begin()->second));
        coming.erase(coming.begin());
        count++;
      }
      for (std::size_t i = 0; i < count; ++i) frames[i] = held[i];
      return count;
    }

    SimulatedWire& wire;
    std::size_t end;
    std::vector<std::byte> buffer;
    std::multimap<Nanoseconds, std::vector<std::byte>> coming;  ///< By arrival.
    std::vector<std::vector<std::byte>> held;
    std::function<void()> serve;
    Nanoseconds received_at = 0;
    Nanoseconds free_at = 0;  ///< When the last frame towards here has left the limit.
  };

  bool Chance(double chance) { return chance > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < chance; }

  static void Mark(std::vector<std::byte>* frame) {
    Datagram datagram;
    if (DecodeFrame(*frame, &datagram) != FrameVerdict::kOk || datagram.path.ecn == Ecn::kNot) return;
    datagram.path.ecn = Ecn::kCongested;
    EncodeFrame(datagram.path, *frame);
  }

  void Carry(std::size_t to, std::span<const std::byte> bytes) {
    if (tap) tap(bytes);
    sent_++;
    const Nanoseconds now = clock_.Now();
    if (cut_ || Chance(options_.loss)) return;
    std::vector<std::byte> frame(bytes.begin(), bytes.end());
    Nanoseconds leaves = now;
    Port& port = ports_[to];
    if (options_.rate > 0) {
      const Nanoseconds waits = std::max<Nanoseconds>(port.free_at - now, 0);
      const Bytes queued = static_cast<Bytes>(ToSeconds(waits) * options_.rate);
      if (queued + frame.size() > options_.queue) return;
      if (options_.mark_above > 0 && queued > options_.mark_above) Mark(&frame);
      const double takes = TransferNanoseconds(static_cast<double>(frame.size()), options_.rate);
      leaves = port.free_at = now + waits + static_cast<Nanoseconds>(takes);
    }
    if (Chance(options_.damage)) {
      const std::size_t bit = random_() % (8 * frame.size());
      frame[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
    const int copies = Chance(options_.duplication) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const auto span = static_cast<std::uint64_t>(options_.delay_max - options_.delay_min) + 1;
      const Nanoseconds delay = options_.delay_min + static_cast<Nanoseconds>(random_() % span);
      port.coming.emplace(leaves + delay, frame);
    }
  }

  WireOptions options_;
  const Clock& clock_;
  std::mt19937_64 random_;
  std::array<Port, 2> ports_;
  bool cut_ = false;
  std::uint64_t sent_ = 0;
};

}  // namespace weir::transport::dpdk
