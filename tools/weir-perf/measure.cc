#include "tools/weir-perf/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "tools/weir-perf/ends.h"
#include "transport/clock.h"

namespace weir::tools {
namespace {

using transport::Outcome;
using transport::SteadyClock;

constexpr Bytes kSendMemory = 64u << 20;  ///< Of all sends that are under way, unless one needs more.

/// Keeps sends under way. Advance() tests the oldest, and posts another if it may.
class Pump {
 public:
  Pump(transport::Sender* sender, Bytes size, std::uint32_t in_flight)
      : sender_(*sender),
        // One for each that is under way, as a program has them; what is sent again and again from one place is always
        // in the cache.
        buffers_(std::clamp<std::size_t>(kSendMemory / std::max<Bytes>(size, 1), 1, in_flight),
                 std::vector<std::byte>(size, std::byte{0x5a})),
        in_flight_(in_flight) {
    for (const auto& buffer : buffers_) memory_.push_back(Known(sender, buffer));
  }

  /// Errors: why the channel failed.
  Status Advance(bool post) {
    bool idle = true;
    if (post && under_way_.size() < in_flight_) {
      const std::vector<std::byte>& buffer = buffers_[posted_ % buffers_.size()];
      const transport::Part part{buffer.data(), buffer.size(), memory_[posted_ % buffers_.size()]};
      transport::Request* request = nullptr;
      const Outcome outcome = sender_.Isend(std::span(&part, 1), 0, &request);
      if (outcome == Outcome::kFailed) return sender_.failure();
      if (outcome == Outcome::kDone) {
        under_way_.push_back(request);
        posted_++;
        idle = false;
      }
    }
    if (!under_way_.empty()) {
      const Outcome outcome = sender_.Test(under_way_.front(), {});
      if (outcome == Outcome::kFailed) return sender_.failure();
      if (outcome == Outcome::kDone) {
        under_way_.pop_front();
        idle = false;
      }
    }
    if (idle) std::this_thread::yield();
    return Status::Ok();
  }

  /// Sends each buffer once, so that nothing that is measured is the first to touch memory.
  Status WarmUp() {
    while (posted_ < buffers_.size() || !empty()) {
      if (Status status = Advance(posted_ < buffers_.size()); !status.ok()) return status;
    }
    warm_ = posted_;
    return Status::Ok();
  }

  bool empty() const { return under_way_.empty(); }
  /// Since the warm-up.
  std::uint64_t posted() const { return posted_ - warm_; }

 private:
  transport::Sender& sender_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<transport::MemoryId> memory_;
  std::size_t in_flight_;
  std::deque<transport::Request*> under_way_;
  std::uint64_t posted_ = 0;
  std::uint64_t warm_ = 0;
};

/// Waits for the other end to have everything: it answers a message of nothing.
Status Settle(Channels* channels) {
  if (Status status = SendOne(channels->sender.get(), {}); !status.ok()) return status;
  std::vector<std::byte> room(1);
  Bytes size = 0;
  return ReceiveOne(channels->receiver.get(), &room, &size);
}

Status MeasureBandwidth(const MeasureOptions& options, Rendezvous* rendezvous, transport::Transport* transport,
                        SizeResult* result) {
  auto channels = AskFor({TestKind::kBandwidth, result->size, 0}, rendezvous, transport, nullptr);
  if (!channels) return channels.error();
  Pump pump(channels->sender.get(), result->size, options.in_flight);
  if (Status status = pump.WarmUp(); !status.ok()) return status;
  const double cpu = ThreadCpuSeconds();
  const Nanoseconds begin = SteadyClock().Now();
  const auto span = static_cast<Nanoseconds>(options.seconds * 1e9);
  while (SteadyClock().Now() - begin < span || !pump.empty()) {
    if (Status status = pump.Advance(SteadyClock().Now() - begin < span); !status.ok()) return status;
  }
  if (Status status = Settle(&*channels); !status.ok()) return status;
  const double seconds = ToSeconds(SteadyClock().Now() - begin);
  const double own_cpu = ThreadCpuSeconds() - cpu;
  const auto other_cpu = EndOfTest(rendezvous);
  if (!other_cpu) return other_cpu.error();
  const auto messages = static_cast<double>(pump.posted());
  const double bytes = messages * static_cast<double>(result->size);
  result->bits_per_second = bytes * 8 / seconds;
  result->messages_per_second = messages / seconds;
  result->cpu_seconds_per_gb = (own_cpu + *other_cpu) / (bytes * 1e-9);
  return Status::Ok();
}

Status MeasureLatency(const MeasureOptions& options, Rendezvous* rendezvous, transport::Transport* transport,
                      SizeResult* result) {
  auto channels = AskFor({TestKind::kLatency, result->size, options.pings}, rendezvous, transport, nullptr);
  if (!channels) return channels.error();
  const std::vector<std::byte> data(result->size, std::byte{0x5a});
  Ahead ahead(channels->receiver.get(), result->size);
  const transport::MemoryId from = Known(channels->sender.get(), data);
  std::vector<double> halves;
  if (Status status = ahead.Post(); !status.ok()) return status;
  const Nanoseconds until = SteadyClock().Now() + static_cast<Nanoseconds>(options.seconds * 1e9);
  while (halves.size() < options.pings && (halves.size() < kPingsMin || SteadyClock().Now() < until)) {
    Bytes size = 0;
    const Nanoseconds begin = SteadyClock().Now();
    if (Status status = SendOne(channels->sender.get(), data, from); !status.ok()) return status;
    if (Status status = ahead.Post(); !status.ok()) return status;
    if (Status status = ahead.Take(&size); !status.ok()) return status;
    halves.push_back(static_cast<double>(SteadyClock().Now() - begin) / 2e3);
  }
  if (halves.size() < options.pings) {
    if (Status status = SendOne(channels->sender.get(), {}); !status.ok()) return status;
  }
  result->pings = static_cast<std::uint32_t>(halves.size());
  halves.erase(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 10));  // Warm-up.
  std::sort(halves.begin(), halves.end());
  result->latency_p50_us = halves[halves.size() / 2];
  result->latency_p99_us = halves[halves.size() * 99 / 100];
  const auto end = EndOfTest(rendezvous);
  return end ? Status::Ok() : end.error();
}

}  // namespace

Result<SizeResult> MeasureSize(Bytes size, const MeasureOptions& options, Rendezvous* rendezvous,
                               transport::Transport* transport) {
  SizeResult result;
  result.size = size;
  if (options.bandwidth) {
    if (Status status = MeasureBandwidth(options, rendezvous, transport, &result); !status.ok()) {
      return tl::unexpected(status);
    }
  }
  if (options.latency) {
    if (Status status = MeasureLatency(options, rendezvous, transport, &result); !status.ok()) {
      return tl::unexpected(status);
    }
  }
  return result;
}

}  // namespace weir::tools
