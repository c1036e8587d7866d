#include "tools/weir-perf/soak.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "transport/clock.h"

namespace weir::tools {
namespace {

using transport::Outcome;

constexpr std::size_t kUnderWay = 6;
constexpr std::uint32_t kLooksAtOnce = 16;
constexpr Bytes kUsualMax = 4u << 20;  ///< Of all messages but the first.

std::uint64_t Mix(std::uint64_t value) {
  return std::mt19937_64(value)();
}

/// One direction's messages, the same at both ends: message i has parts that begin anywhere in a block of random bytes.
class Script {
 public:
  Script(std::uint64_t seed, Bytes total, Bytes first) : random_(seed), total_(total), next_(first) {
    std::mt19937_64 noise(seed);
    block_.resize(std::max<Bytes>((first + transport::kMaxParts - 1) / transport::kMaxParts, kUsualMax) + kShift);
    for (std::size_t i = 0; i + 8 <= block_.size(); i += 8) {
      const std::uint64_t word = noise();
      std::memcpy(block_.data() + i, &word, 8);
    }
    if (first == 0) Draw();
  }

  bool over() const { return done_ >= total_; }

  /// The next message.
  std::vector<transport::Part> Take() {
    std::vector<transport::Part> parts;
    const Bytes each = (next_ + transport::kMaxParts - 1) / transport::kMaxParts;
    for (Bytes left = next_; left > 0 || parts.empty();) {
      const Bytes size = std::min(left, next_ > kUsualMax ? each : left);
      parts.push_back({block_.data() + random_() % kShift, size, {}});
      left -= size;
    }
    done_ += next_;
    Draw();
    return parts;
  }

 private:
  static constexpr std::size_t kShift = 4096;

  void Draw() { next_ = random_() % (Bytes{1} << (random_() % 23)) % kUsualMax; }

  std::mt19937_64 random_;
  Bytes total_;
  Bytes next_;
  Bytes done_ = 0;
  std::vector<std::byte> block_;
};

Bytes SizeOf(const std::vector<transport::Part>& parts) {
  Bytes size = 0;
  for (const transport::Part& part : parts) size += part.size;
  return size;
}

class Outgoing {
 public:
  Outgoing(transport::Sender* sender, Script script) : sender_(*sender), script_(std::move(script)) {}
  bool over() const { return script_.over() && message_.empty() && under_way_.empty(); }
  std::uint64_t messages() const { return messages_; }

  Status Step() {
    if (message_.empty() && !script_.over()) message_ = script_.Take();
    if (!message_.empty() && under_way_.size() < kUnderWay) {
      transport::Request* request = nullptr;
      const Outcome outcome = sender_.Isend(message_, 0, &request);
      if (outcome == Outcome::kFailed) return sender_.failure();
      if (outcome == Outcome::kDone) {
        under_way_.push_back(request);
        message_.clear();
        messages_++;
      }
    }
    if (!under_way_.empty()) {
      const Outcome outcome = sender_.Test(under_way_.front(), {});
      if (outcome == Outcome::kFailed) return sender_.failure();
      if (outcome == Outcome::kDone) under_way_.pop_front();
    }
    return Status::Ok();
  }

 private:
  transport::Sender& sender_;
  Script script_;
  std::vector<transport::Part> message_;
  std::deque<transport::Request*> under_way_;
  std::uint64_t messages_ = 0;
};

class Incoming {
 public:
  Incoming(transport::Receiver* receiver, Script script) : receiver_(*receiver), script_(std::move(script)) {}
  bool over() const { return script_.over() && posted_.empty(); }
  std::uint64_t messages() const { return messages_; }
  Bytes bytes() const { return bytes_; }

  Status Step() {
    if (!script_.over() && posted_.size() < kUnderWay) {
      Posted posted{script_.Take(), {}, nullptr};
      posted.room.resize(SizeOf(posted.message) + 1);  // Room for more than comes: the length is checked, too.
      const transport::Slot slot{posted.room.data(), posted.room.size(), 0, {}};
      if (receiver_.Irecv(std::span(&slot, 1), &posted.request) != Outcome::kDone) return receiver_.failure();
      posted_.push_back(std::move(posted));
    }
    if (posted_.empty()) return Status::Ok();
    Bytes size = 0;
    const Outcome outcome = receiver_.Test(posted_.front().request, std::span(&size, 1));
    if (outcome == Outcome::kFailed) return receiver_.failure();
    if (outcome == Outcome::kAgain) return Status::Ok();
    const Status status = Compare(posted_.front().message, posted_.front().room, size);
    posted_.pop_front();
    return status;
  }

 private:
  struct Posted {
    std::vector<transport::Part> message;
    std::vector<std::byte> room;
    transport::Request* request;
  };

  Status Compare(const std::vector<transport::Part>& message, const std::vector<std::byte>& room, Bytes size) {
    if (size != SizeOf(message)) {
      return Status(StatusCode::kInternal,
                    fmt::format("message {} has {} bytes, {} were sent", messages_, size, SizeOf(message)));
    }
    Bytes at = 0;
    for (const transport::Part& part : message) {
      if (part.size > 0 && std::memcmp(room.data() + at, part.data, part.size) != 0) {
        return Status(StatusCode::kInternal, fmt::format("message {} of {} bytes differs within {} bytes from {}",
                                                         messages_, size, part.size, at));
      }
      at += part.size;
    }
    messages_++;
    bytes_ += size;
    return Status::Ok();
  }

  transport::Receiver& receiver_;
  Script script_;
  std::deque<Posted> posted_;
  std::uint64_t messages_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace

std::uint64_t ChangingDirectives::Version() const noexcept {
  return static_cast<std::uint64_t>(transport::SteadyClock().Now() / (10 * kMillisecond));
}

transport::LaneDirective ChangingDirectives::Read() const noexcept {
  const std::uint64_t draw = Mix(seed_ ^ Version());
  transport::LaneDirective directive;
  directive.level = static_cast<std::uint8_t>(draw % kQueueLevels);
  if ((draw >> 8) % 3 != 0) directive.rate = BitsPerSecond(2e8 + static_cast<double>((draw >> 16) % 20'000'000'000));
  if ((draw >> 56) % 8 == 0) directive.phase = {2 * kMillisecond, 0, kMillisecond};
  return directive;
}

Status Soak(const Plan& plan, bool asker, Channels* channels, SoakResult* seen,
            const std::function<Status(const SoakResult&)>& look) {
  Script asking(Mix(plan.count), plan.size, plan.size / 2);
  Script answering(Mix(plan.count + std::uint64_t{1}), plan.size, 0);
  Outgoing out(channels->sender.get(), std::move(asker ? asking : answering));
  Incoming in(channels->receiver.get(), std::move(asker ? answering : asking));
  // On a host with more to do than it has cores, a core that is given up is long in coming back: not after each look.
  for (std::uint32_t looks = 1; !out.over() || !in.over(); ++looks) {
    Status status = out.Step();
    if (status.ok()) status = in.Step();
    *seen = {out.messages() + in.messages(), in.bytes()};
    if (status.ok() && look) status = look(*seen);
    if (!status.ok()) return status;
    if (looks % kLooksAtOnce == 0) std::this_thread::yield();
  }
  return Status::Ok();
}

}  // namespace weir::tools
