#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/fake/manual_clock.h"
#include "transport/transport.h"

namespace weir::transport {

/// A pair of transports of one kind, on a clock that the test moves: what the conformance tests run against. A new
/// backend joins by a line in its own test file; see fake_backend.cc and tcp_backend.cc.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Transport& left() = 0;
  virtual Transport& right() = 0;
  ManualClock& clock() { return clock_; }
  /// How far the clock moves with each round of calls.
  virtual Nanoseconds step() const { return 5 * kMicrosecond; }

 private:
  ManualClock clock_;
};

struct BackendKind {
  std::string name;
  std::function<std::unique_ptr<Backend>(std::uint32_t requests)> make;
  Bytes bulk = 0;  ///< That the long tests move; what the backend does in a second or so.
};

void PrintTo(const BackendKind& kind, std::ostream* out);

/// Both ends of a channel.
struct Pair {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

class Conformance : public testing::TestWithParam<BackendKind> {
 protected:
  static constexpr std::uint32_t kRequests = 32;

  void SetUp() override { backend_ = GetParam().make(kRequests); }
  ManualClock& clock() { return backend_->clock(); }

  /// Moves time on until `done`; false when it never is.
  bool Until(const std::function<bool()>& done);
  /// From left to right, or the other way.
  Pair Connect(std::uint32_t slots = 1, Lane* lane = nullptr, bool back = false);
  Outcome Send(Sender* sender, std::span<const std::byte> data, std::int32_t tag, Request** request);
  Outcome Receive(Receiver* receiver, std::span<std::byte> data, Request** request);
  /// Sends and receives one small message.
  bool Works(Pair* pair);

  std::unique_ptr<Backend> backend_;
};

std::vector<std::byte> Noise(std::size_t size, std::uint64_t seed);

}  // namespace weir::transport
