#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <thread>

#include "tools/weir-perf/ends.h"
#include "tools/weir-perf/measure.h"
#include "tools/weir-perf/rendezvous.h"
#include "tools/weir-perf/report.h"
#include "tools/weir-perf/soak.h"
#include "transport/tcp/tcp_transport.h"

namespace weir::tools {
namespace {

TEST(PerfSizes, HaveUnitsOf1024) {
  EXPECT_EQ(*ParseSizes("1,64K,1.5M,4G"), (std::vector<Bytes>{1, 65536, 1572864, kSizeMax}));
}

TEST(PerfSizes, WrongOnesAreRefusedWithWhatIsAllowed) {
  for (const char* text : {"", "0", "-1", "5G", "1k", "1KK", "K", "1,,2", "nan", "inf", "1e99"}) {
    const auto sizes = ParseSizes(text);
    ASSERT_FALSE(sizes.has_value()) << text;
    EXPECT_EQ(sizes.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(sizes.error().message().find("allowed: "), std::string::npos) << sizes.error().message();
  }
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_FALSE(ParseSizes(many).has_value());
}

TEST(PerfRates, HaveUnitsOf1000) {
  EXPECT_EQ(*ParseRates("100K,2.5G"), (std::vector<double>{1e5, 2.5e9}));
  EXPECT_FALSE(ParseRates("1K").has_value());
}

TEST(PerfPlan, ComesBackAsItWasAndOthersAreRefused) {
  for (const Plan& plan :
       {Plan{TestKind::kBandwidth, 100, 0}, Plan{TestKind::kLatency, 0, 7}, Plan{TestKind::kSoak, kTotalMax, 3}}) {
    const auto again = PlanFromText(PlanToText(plan));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->kind, plan.kind);
    EXPECT_EQ(again->size, plan.size);
    EXPECT_EQ(again->count, plan.count);
  }
  for (const char* text : {"", "bandwidth", "bandwidth 1", "other 1 1", "bandwidth x 1", "latency 1 99999999999",
                           "bandwidth 1099511627776 0", "soak 1099511627777 1"}) {
    EXPECT_EQ(PlanFromText(text).error().code(), StatusCode::kProtocol) << text;
  }
}

TEST(PerfHandle, ComesBackAsItWasAndOthersAreRefused) {
  transport::Handle handle;
  for (std::size_t i = 0; i < handle.bytes.size(); ++i) handle.bytes[i] = static_cast<std::byte>(2 * i);
  EXPECT_EQ(HandleFromText(HandleToText(handle))->bytes, handle.bytes);
  EXPECT_FALSE(HandleFromText("").has_value());
  std::string text = HandleToText(handle);
  text[5] = 'g';
  EXPECT_FALSE(HandleFromText(text).has_value());
}

/// A receiver in front of another, that turns one bit over in the middle of the first message that is not empty.
class Flipping final : public transport::Receiver {
 public:
  explicit Flipping(std::unique_ptr<transport::Receiver> real) : real_(std::move(real)) {}
  Result<transport::MemoryId> Register(void* data, Bytes size, transport::MemoryKind kind) override {
    return real_->Register(data, size, kind);
  }
  Status Deregister(transport::MemoryId memory) override { return real_->Deregister(memory); }
  transport::Outcome Irecv(std::span<const transport::Slot> slots, transport::Request** request) noexcept override {
    posted_.push_back(static_cast<std::byte*>(slots[0].data));
    return real_->Irecv(slots, request);
  }
  transport::Outcome Test(transport::Request* request, std::span<Bytes> sizes) noexcept override {
    const auto outcome = real_->Test(request, sizes);
    if (outcome != transport::Outcome::kDone) return outcome;
    if (sizes[0] > 0 && !flipped_) {
      flipped_ = true;
      posted_.front()[sizes[0] / 2] ^= std::byte{1};
    }
    posted_.pop_front();
    return outcome;
  }
  const Status& failure() const noexcept override { return real_->failure(); }

 private:
  std::unique_ptr<transport::Receiver> real_;
  std::deque<std::byte*> posted_;
  bool flipped_ = false;
};

/// Both ends of a soak over loopback, each on its thread; `spoil` sees the asker's channels first. Returns the asker's.
Result<SoakResult> SoakHere(const std::function<void(Channels*)>& spoil) {
  transport::TcpOptions options;
  options.interfaces = "=lo";
  const auto transport = std::move(transport::MakeTcpTransport(options).value());
  const auto point = std::move(MeetingPoint::Open("127.0.0.1", 0).value());
  const auto meeting = std::move(Rendezvous::Connect("127.0.0.1", point->port()).value());
  std::thread server([&] {
    const auto client = std::move(point->Accept().value());
    EXPECT_TRUE(Serve(client.get(), transport.get()).ok());
  });
  const Plan plan{TestKind::kSoak, 20'000'000, 5};
  Result<SoakResult> result = Error(StatusCode::kUnavailable, "no channels");
  if (auto channels = AskFor(plan, meeting.get(), transport.get(), nullptr)) {
    spoil(&*channels);
    SoakResult seen;
    const Status status = Soak(plan, true, &*channels, &seen);
    result = status.ok() ? Result<SoakResult>(seen) : tl::unexpected(status);
  }
  EXPECT_TRUE(meeting->Send("bye").ok());
  server.join();
  return result;
}

TEST(PerfSoak, EverythingIsComparedAndNothingDiffers) {
  const auto result = SoakHere([](Channels*) {});
  ASSERT_TRUE(result.has_value()) << result.error().message();
  EXPECT_GE(result->bytes, 20'000'000u);
  EXPECT_GT(result->messages, 20u);
}

TEST(PerfSoak, OneBitThatDiffersIsFound) {
  const auto result = SoakHere(
      [](Channels* channels) { channels->receiver = std::make_unique<Flipping>(std::move(channels->receiver)); });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kInternal);
  EXPECT_NE(result.error().message().find("differs within"), std::string::npos) << result.error().message();
}

/// Makes pings of 1 KB over loopback, one time after the other, each for so long; returns how many each had.
std::vector<std::uint32_t> PingsOf(const std::vector<MeasureOptions>& times) {
  transport::TcpOptions options;
  options.interfaces = "=lo";
  const auto transport = std::move(transport::MakeTcpTransport(options).value());
  const auto point = std::move(MeetingPoint::Open("127.0.0.1", 0).value());
  const auto meeting = std::move(Rendezvous::Connect("127.0.0.1", point->port()).value());
  std::thread server([&] {
    const auto client = std::move(point->Accept().value());
    EXPECT_TRUE(Serve(client.get(), transport.get()).ok());
  });
  std::vector<std::uint32_t> pings;
  for (const MeasureOptions& one : times) {
    const auto result = MeasureSize(1024, one, meeting.get(), transport.get());
    EXPECT_TRUE(result.has_value()) << result.error().message();
    pings.push_back(result ? result->pings : 0);
  }
  EXPECT_TRUE(meeting->Send("bye").ok());
  server.join();
  return pings;
}

TEST(PerfLatency, TimeOrNumberEndsThePingsAndTheNextTestIsServed) {
  MeasureOptions options;
  options.bandwidth = false;
  options.seconds = 0;
  MeasureOptions few = options;
  few.pings = 3;
  MeasureOptions long_time = options;
  long_time.seconds = 3600;
  long_time.pings = 40;
  EXPECT_EQ(PingsOf({options, few, long_time, options}), (std::vector<std::uint32_t>{kPingsMin, 3, 40, kPingsMin}));
}

TEST(PerfServe, APlanThatMakesNoSenseIsAnsweredAndTheNextOneServed) {
  transport::TcpOptions options;
  options.interfaces = "=lo";
  const auto transport = std::move(transport::MakeTcpTransport(options).value());
  const auto point = std::move(MeetingPoint::Open("127.0.0.1", 0).value());
  const auto meeting = std::move(Rendezvous::Connect("127.0.0.1", point->port()).value());
  std::thread server([&] {
    const auto client = std::move(point->Accept().value());
    EXPECT_TRUE(Serve(client.get(), transport.get()).ok());
  });
  for (const std::string line : {"", "bandwidth 5 5", "bandwidth 5 5 zz", "what 1 1 00"}) {
    EXPECT_TRUE(meeting->Send(line).ok());
    const auto answer = meeting->Receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(answer->starts_with("error ")) << *answer;
  }
  EXPECT_TRUE(meeting->Send("bye").ok());
  server.join();
}

}  // namespace
}  // namespace weir::tools
