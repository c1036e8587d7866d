#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "transport/clock.h"
#include "transport/transport.h"

namespace weir::transport {

/// What goes wrong on a FakeNetwork, and how often. Chances are 0 .. 1.
struct FakeOptions {
  std::uint64_t seed = 1;
  double loss = 0;
  double duplication = 0;
  /// Each packet takes a time between the two, drawn on its own: that is also what reorders them.
  Nanoseconds delay_min = 10 * kMicrosecond;
  Nanoseconds delay_max = 10 * kMicrosecond;
  Bytes packet_bytes = 4096;
  /// Packets have random sizes from one byte on, and a call sends a random part of what it could.
  bool partial = false;
  std::uint32_t requests = 256;
  Nanoseconds dead_after = 10 * kSecond;
};

namespace fake {

/// A piece of a message, with its number for acknowledgements.
struct Packet {
  std::uint64_t number = 0;
  std::uint32_t message = 0;
  std::int32_t tag = 0;
  Bytes offset = 0;
  Bytes total = 0;
  std::vector<std::byte> bytes;
};

/// What the two ends of a channel share: packets one way, acknowledgements and posted receives the other.
struct Wire {
  struct End {
    std::string identity;
    bool closed = false;
    Nanoseconds closed_at = 0;
  };
  std::multimap<Nanoseconds, Packet> packets;      ///< By arrival.
  std::multimap<Nanoseconds, std::uint64_t> acks;  ///< By arrival. Late, but never lost: nobody would repeat them.
  std::multimap<Nanoseconds, std::vector<Slot>> posted;  ///< By arrival; memory is not looked at. Never lost.
  std::uint32_t slots = 1;
  End sender;
  End receiver;
};

}  // namespace fake

/// An in-memory network on which FakeTransports meet: loses, delays, reorders, duplicates and cuts, all from one seed
/// and one clock. A channel over it is reliable all the same (selective repeat), so what stands above sees a transport
/// that is slow in every way a real one can be. Not a model of any protocol's speed.
///
/// One thread: transports, channels and network. Outlives its transports. The clock outlives it.
class FakeNetwork {
 public:
  FakeNetwork(const FakeOptions& options, const Clock* clock)
      : options_(options), clock_(*clock), random_(options.seed) {}

  /// While cut, nothing arrives, packets that are sent are lost, and nobody is told. Channels that wait for longer than
  /// dead_after fail.
  void Cut(bool cut);

  const FakeOptions& options() const { return options_; }
  Nanoseconds Now() const { return clock_.Now(); }
  bool DeadFor(Nanoseconds span) const { return cut_ && Now() - cut_since_ >= span; }

  // For the fake's own parts.
  bool Chance(double chance) { return std::uniform_real_distribution<double>(0, 1)(random_) < chance; }
  std::uint64_t Draw(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
  }
  Nanoseconds ArrivesAt() {
    return Now() + static_cast<Nanoseconds>(Draw(static_cast<std::uint64_t>(options_.delay_min),
                                                 static_cast<std::uint64_t>(options_.delay_max)));
  }
  bool Loses() { return cut_ || Chance(options_.loss); }
  /// Listeners by number; who connected waits in the queue.
  std::map<std::uint64_t, std::deque<std::shared_ptr<fake::Wire>>> doors;
  std::uint64_t next_door = 1;

 private:
  FakeOptions options_;
  const Clock& clock_;
  std::mt19937_64 random_;
  bool cut_ = false;
  Nanoseconds cut_since_ = 0;
};

/// A transport on `network` with one device. `identity` names it in messages.
std::unique_ptr<Transport> MakeFakeTransport(FakeNetwork* network, std::string identity);

}  // namespace weir::transport
