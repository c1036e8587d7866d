// What every backend does with messages: whole, in order, into the right slot, whatever the sizes and directives.
#include <algorithm>
#include <deque>
#include <random>

#include "tests/transport/conformance/backend.h"
#include "transport/fake/scripted_directives.h"
#include "transport/pacer/pacer.h"

namespace weir::transport {
namespace {

/// A run of messages over one channel: posts as much as the channel takes, checks what arrives.
class Stream {
 public:
  Stream(Pair pair, std::vector<std::size_t> sizes, std::uint64_t seed)
      : pair_(std::move(pair)),
        sizes_(std::move(sizes)),
        data_(Noise(*std::max_element(sizes_.begin(), sizes_.end()) + 64, seed)) {}

  /// One round of calls; true when everything was sent and received.
  bool Step() {
    Post();
    Complete();
    return received_ == sizes_.size() && sends_.empty();
  }

 private:
  struct Receiving {
    Request* request;
    std::vector<std::byte> room;
  };

  std::span<const std::byte> Message(std::size_t i) const { return std::span(data_).subspan(i % 64, sizes_[i]); }

  void Post() {
    if (sent_ < sizes_.size()) {
      const auto message = Message(sent_);
      const Part part{message.data(), message.size(), {}};
      Request* request = nullptr;
      const Outcome outcome = pair_.sender->Isend(std::span(&part, 1), 0, &request);
      ASSERT_NE(outcome, Outcome::kFailed) << pair_.sender->failure().ToString();
      if (outcome == Outcome::kDone) {
        sends_.push_back(request);
        sent_++;
      }
    }
    if (posted_ < sizes_.size() && receives_.size() < 4) {
      Receiving receiving{nullptr, std::vector<std::byte>(sizes_[posted_] + 10)};
      const Slot slot{receiving.room.data(), receiving.room.size(), 0, {}};
      const Outcome outcome = pair_.receiver->Irecv(std::span(&slot, 1), &receiving.request);
      ASSERT_EQ(outcome, Outcome::kDone) << pair_.receiver->failure().ToString();
      receives_.push_back(std::move(receiving));
      posted_++;
    }
  }

  void Complete() {
    if (!sends_.empty()) {
      const Outcome outcome = pair_.sender->Test(sends_.front(), {});
      ASSERT_NE(outcome, Outcome::kFailed) << pair_.sender->failure().ToString();
      if (outcome == Outcome::kDone) sends_.pop_front();
    }
    if (!receives_.empty()) {
      Bytes size = 0;
      Receiving& first = receives_.front();
      const Outcome outcome = pair_.receiver->Test(first.request, std::span(&size, 1));
      ASSERT_NE(outcome, Outcome::kFailed) << pair_.receiver->failure().ToString();
      if (outcome != Outcome::kDone) return;
      const auto want = Message(received_);
      ASSERT_EQ(size, want.size()) << "message " << received_;
      ASSERT_TRUE(std::equal(want.begin(), want.end(), first.room.begin())) << "message " << received_;
      receives_.pop_front();
      received_++;
    }
  }

  Pair pair_;
  std::vector<std::size_t> sizes_;
  std::vector<std::byte> data_;
  std::deque<Request*> sends_;
  std::deque<Receiving> receives_;
  std::size_t sent_ = 0;
  std::size_t posted_ = 0;
  std::size_t received_ = 0;
};

/// Sizes of all magnitudes that add up to about `total`.
std::vector<std::size_t> Sizes(Bytes total, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> sizes;
  Bytes sum = 0;
  while (sum < total) {
    const std::size_t size = random() % (std::size_t{1} << (random() % 23));
    sizes.push_back(size);
    sum += size + 100;
  }
  return sizes;
}

TEST_P(Conformance, MessagesOfAllSizesArriveWholeAndInOrderBothWays) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE(kSeed);
  Stream there(Connect(), Sizes(GetParam().bulk, kSeed), kSeed);
  Stream back(Connect(1, nullptr, true), Sizes(GetParam().bulk, kSeed + 1), kSeed + 1);
  EXPECT_TRUE(Until([&] {
    const bool one = there.Step();
    return (back.Step() && one) || HasFailure();
  }));
}

TEST_P(Conformance, DirectivesThatChangeAHundredTimesASecondLoseNothing) {
  constexpr std::uint64_t kSeed = 21;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::vector<ScriptedDirectives::Step> steps;
  for (int i = 0; i < 1000; ++i) {
    LaneDirective directive;
    directive.level = static_cast<std::uint8_t>(random() % 8);
    directive.rate = random() % 3 == 0 ? 0 : BitsPerSecond(1e8 + static_cast<double>(random() % 5'000'000'000));
    if (random() % 4 == 0) directive.phase = {2 * kMillisecond, 0, kMillisecond};
    steps.push_back({i * 10 * kMillisecond, directive});
  }
  ScriptedDirectives first(&clock(), steps);
  std::reverse(steps.begin(), steps.end());
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].at = static_cast<Nanoseconds>(i) * 10 * kMillisecond;
  ScriptedDirectives second(&clock(), steps);
  Pacer pacer;
  Lane one(&pacer, &first);
  Lane other(&pacer, &second);
  Stream there(Connect(1, &one), Sizes(GetParam().bulk / 4, kSeed), kSeed);
  Stream beside(Connect(1, &other), Sizes(GetParam().bulk / 4, kSeed + 1), kSeed + 1);
  EXPECT_TRUE(Until([&] {
    const bool done = there.Step();
    return (beside.Step() && done) || HasFailure();
  }));
  EXPECT_GE(one.counters().bytes, GetParam().bulk / 8);
}

TEST_P(Conformance, ACapIsNeverExceeded) {
  ScriptedDirectives directives(&clock(), {{0, LaneDirective{0, 1e6, {}, 0}}});
  Pacer pacer;
  Lane lane(&pacer, &directives);
  Pair pair = Connect(1, &lane);
  const auto data = Noise(50'000, 1);
  std::vector<std::byte> room(data.size());
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
  const Nanoseconds begin = clock().Now();
  ASSERT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kDone);
  bool sent = false;
  ASSERT_TRUE(Until([&] {
    const double allowed = 5000 + 1e6 * ToSeconds(clock().Now() - begin);
    EXPECT_LE(static_cast<double>(lane.counters().bytes), allowed + 1);
    sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
    return pair.receiver->Test(receive, {}) == Outcome::kDone || HasFailure();
  }));
  EXPECT_EQ(room, data);
  EXPECT_GE(clock().Now() - begin, 45 * kMillisecond);
}

/// A lane of one level, a channel through it, and messages of zeros that never end.
struct Saturated {
  Saturated(Pacer* pacer, const Clock* clock, std::uint8_t level)
      : directives(clock, {{0, LaneDirective{level, 0, {}, 0}}}), lane(pacer, &directives) {}

  /// Keeps sends and receives under way; `send` says whether there is anything new to send.
  void Step(bool send) {
    if (send && sending.size() < 8) {
      const Part part{data.data(), data.size(), {}};
      Request* request = nullptr;
      ASSERT_EQ(pair.sender->Isend(std::span(&part, 1), 0, &request), Outcome::kDone);
      sending.push_back(request);
    }
    if (!sending.empty() && pair.sender->Test(sending.front(), {}) == Outcome::kDone) sending.pop_front();
    if (receiving == nullptr) {
      const Slot slot{room.data(), room.size(), 0, {}};
      ASSERT_EQ(pair.receiver->Irecv(std::span(&slot, 1), &receiving), Outcome::kDone);
    } else if (pair.receiver->Test(receiving, {}) == Outcome::kDone) {
      receiving = nullptr;
    }
  }

  ScriptedDirectives directives;
  Lane lane;
  Pair pair;
  std::vector<std::byte> data = std::vector<std::byte>(256 * 1024);
  std::vector<std::byte> room = std::vector<std::byte>(256 * 1024);
  std::deque<Request*> sending;
  Request* receiving = nullptr;
};

TEST_P(Conformance, AHighLevelAmongEightSaturatedLowOnesGetsNearlyAllThatPasses) {
  Pacer pacer;
  std::vector<std::unique_ptr<Saturated>> lows;
  for (int i = 0; i < 8; ++i) {
    lows.push_back(std::make_unique<Saturated>(&pacer, &clock(), 5));
    lows.back()->pair = Connect(1, &lows.back()->lane);
  }
  Saturated high(&pacer, &clock(), 1);
  high.pair = Connect(1, &high.lane);
  Pair idle = Connect(1, &high.lane);  // It shares the lane and has nothing to send, which must not end its place.
  const auto low_bytes = [&] {
    Bytes sum = 0;
    for (const auto& low : lows) sum += low->lane.counters().bytes;
    return sum;
  };
  const auto run = [&](bool with_high, Bytes until) {
    return Until([&] {
      for (const auto& low : lows) low->Step(true);
      high.Step(with_high);
      EXPECT_EQ(idle.sender->Look(), Outcome::kDone);
      return (with_high ? high.lane.counters().bytes : low_bytes()) >= until || HasFailure();
    });
  };
  ASSERT_TRUE(run(false, GetParam().bulk / 8));
  for (const auto& low : lows) EXPECT_GT(low->lane.counters().bytes, GetParam().bulk / 8 / 16) << "alike before";
  high.Step(true);
  const Bytes before = low_bytes();
  ASSERT_TRUE(run(true, GetParam().bulk / 4));
  const auto passed = static_cast<double>(low_bytes() - before);
  EXPECT_LE(passed / (passed + static_cast<double>(high.lane.counters().bytes)), 0.05);
  const Bytes after = low_bytes();
  ASSERT_TRUE(run(false, after + GetParam().bulk / 8)) << "they go on when it is over";
}

TEST_P(Conformance, PartsAreGatheredInOrder) {
  Pair pair = Connect();
  const auto data = Noise(900'000, 2);
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const std::size_t size : {7u, 0u, 100'000u, 1u, 499'992u, 0u, 300'000u, 0u}) {
    parts.push_back({data.data() + at, size, {}});
    at += size;
  }
  ASSERT_EQ(at, data.size());
  std::vector<std::byte> room(data.size());
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
  ASSERT_EQ(pair.sender->Isend(parts, 0, &send), Outcome::kDone);
  bool sent = false;
  bool received = false;
  EXPECT_TRUE(Until([&] {
    sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
    received = received || pair.receiver->Test(receive, {}) == Outcome::kDone;
    return sent && received;
  }));
  EXPECT_EQ(room, data);
}

TEST_P(Conformance, AReceiveOfSeveralSlotsTakesEachMessageIntoTheSlotOfItsTag) {
  Pair pair = Connect(4);
  const auto data = Noise(3 * 400'000, 3);
  const auto message = [&](std::size_t i) { return std::span(data).subspan(i * 400'000, 100'000 * (i + 1)); };
  std::vector<std::vector<std::byte>> rooms(6, std::vector<std::byte>(400'000));
  Request* refused = nullptr;
  EXPECT_EQ(Send(pair.sender.get(), message(0), 1, &refused), Outcome::kAgain) << "nothing is posted yet";
  EXPECT_EQ(refused, nullptr);
  Request* receives[2] = {};
  for (std::size_t group = 0; group < 2; ++group) {
    std::vector<Slot> slots;
    slots.reserve(3);
    for (std::size_t i = 0; i < 3; ++i) {
      slots.push_back({rooms[group * 3 + i].data(), 400'000, static_cast<std::int32_t>(i), {}});
    }
    ASSERT_EQ(pair.receiver->Irecv(slots, &receives[group]), Outcome::kDone);
  }
  Request* sends[6] = {};
  std::size_t posted = 0;
  // Tags 2, 0, 1 for the first, then 1, 2, 0 for the second.
  const std::int32_t tags[] = {2, 0, 1, 1, 2, 0};
  bool tried_early = false;
  ASSERT_TRUE(Until([&] {
    if (posted == 1 && !tried_early) {
      tried_early = true;  // The slot of tag 2 is taken, and the next receive's turn has not come.
      EXPECT_EQ(Send(pair.sender.get(), message(2), 2, &refused), Outcome::kAgain);
    }
    if (posted < 6 && Send(pair.sender.get(), message(static_cast<std::size_t>(tags[posted])), tags[posted],
                           &sends[posted]) == Outcome::kDone) {
      posted++;
    }
    return posted == 6;
  }));
  bool sent[6] = {};
  for (std::size_t group = 0; group < 2; ++group) {
    Bytes sizes[3] = {};
    ASSERT_TRUE(Until([&] {
      for (std::size_t i = 0; i < 6; ++i) sent[i] = sent[i] || pair.sender->Test(sends[i], {}) == Outcome::kDone;
      return pair.receiver->Test(receives[group], sizes) == Outcome::kDone;
    }));
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(sizes[i], message(i).size());
      EXPECT_TRUE(std::equal(message(i).begin(), message(i).end(), rooms[group * 3 + i].begin())) << group << i;
    }
  }
}

TEST_P(Conformance, AMessageOfNothingArrives) {
  Pair pair = Connect();
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(Receive(pair.receiver.get(), {}, &receive), Outcome::kDone);
  ASSERT_EQ(Send(pair.sender.get(), {}, 0, &send), Outcome::kDone);
  Bytes size = 77;
  bool sent = false;
  EXPECT_TRUE(Until([&] {
    sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
    return pair.receiver->Test(receive, std::span(&size, 1)) == Outcome::kDone;
  }));
  EXPECT_EQ(size, 0u);
  EXPECT_TRUE(Works(&pair));
}

TEST_P(Conformance, APeerThatDoesNotAskForAMinuteLosesNothing) {
  Pair pair = Connect();
  const auto data = Noise(6 << 20, 4);
  std::vector<std::byte> room(data.size());
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kDone);
  bool sent = false;
  for (int i = 0; i < 600; ++i) {
    clock().Advance(100 * kMillisecond);
    const Outcome outcome = sent ? Outcome::kDone : pair.sender->Test(send, {});
    ASSERT_NE(outcome, Outcome::kFailed) << pair.sender->failure().ToString();
    sent = outcome == Outcome::kDone;
  }
  ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
  ASSERT_TRUE(Until([&] {
    sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
    return pair.receiver->Test(receive, {}) == Outcome::kDone;
  }));
  EXPECT_EQ(room, data);
}

}  // namespace
}  // namespace weir::transport
