#include "tools/weir-perf/coflows.h"

#include <gtest/gtest.h>

#include <thread>

#include "tools/weir-perf/ends.h"
#include "tools/weir-perf/levels.h"
#include "transport/tcp/tcp_transport.h"

namespace weir::tools {
namespace {

TEST(PerfCoflows, AnEntryIsCountLevelSpanAndCap) {
  const auto entries = ParseCoflows("8x7,3,2x0@0.5-1/2G,1@1.5-", 2);
  ASSERT_TRUE(entries.has_value()) << entries.error().message();
  ASSERT_EQ(entries->size(), 4u);
  const CoflowEntry& many = (*entries)[0];
  EXPECT_EQ(many.count, 8u);
  EXPECT_EQ(many.plan.level, 7);
  EXPECT_EQ(many.plan.cap_bits, 0);
  EXPECT_EQ(many.plan.spans.front().until_s, 2);
  EXPECT_EQ((*entries)[1].count, 1u);
  const CoflowEntry& capped = (*entries)[2];
  EXPECT_EQ(capped.text, "2x0@0.5-1/2G");
  EXPECT_EQ(capped.count, 2u);
  EXPECT_EQ(capped.plan.spans.front().from_s, 0.5);
  EXPECT_EQ(capped.plan.spans.front().until_s, 1);
  EXPECT_EQ(capped.plan.cap_bits, 2e9);
  EXPECT_EQ((*entries)[3].plan.spans.front().until_s, 2);
}

TEST(PerfCoflows, WhatIsNoEntryIsRefusedWithWhatIsAllowed) {
  for (const char* text : {"", "x", "8", "-1", "0x1", "65x1", "40x1,40x2", "1@", "1@1", "1@1-0.5", "1@0-3", "1@-1-1",
                           "1@nan-1", "1/", "1/1K", "1/1M@0-1", "1 ", "1x"}) {
    const auto entries = ParseCoflows(text, 2);
    ASSERT_FALSE(entries.has_value()) << text;
    EXPECT_EQ(entries.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(entries.error().message().find("allowed: "), std::string::npos);
  }
}

TEST(PerfCoflows, StepsAtTheEndsOfASpanCountInPart) {
  Arrivals arrivals;
  arrivals.bytes = {{10, 20, 30}, {1, 2, 3}};
  EXPECT_DOUBLE_EQ(arrivals.Between(0, 1, {0, 0.003}), 60);
  EXPECT_DOUBLE_EQ(arrivals.Between(0, 2, {0.001, 0.002}), 22);
  EXPECT_NEAR(arrivals.Between(0, 1, {0.0005, 0.0025}), 5 + 20 + 15, 1e-9);
  EXPECT_DOUBLE_EQ(arrivals.Between(0, 2, {0.003, 9}), 0);
  arrivals.away = {0, 7, 9};
  EXPECT_EQ(arrivals.LongestAway({0, 0.002}), 7);
  EXPECT_EQ(arrivals.LongestAway({0.0015, 1}), 9);
}

/// A server on a thread of its own, and what reaches it over loopback.
class Here {
 public:
  Here() {
    transport::TcpOptions options;
    options.interfaces = "=lo";
    transport_ = std::move(transport::MakeTcpTransport(options).value());
    point_ = std::move(MeetingPoint::Open("127.0.0.1", 0).value());
    meeting_ = std::move(Rendezvous::Connect("127.0.0.1", point_->port()).value());
    server_ = std::thread([this] {
      const auto client = std::move(point_->Accept().value());
      EXPECT_TRUE(Serve(client.get(), transport_.get()).ok());
    });
  }
  ~Here() {
    EXPECT_TRUE(meeting_->Send("bye").ok());
    server_.join();
  }
  Rendezvous* meeting() { return meeting_.get(); }
  transport::Transport* transport() { return transport_.get(); }

 private:
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<MeetingPoint> point_;
  std::unique_ptr<Rendezvous> meeting_;
  std::thread server_;
};

TEST(PerfCoflows, EachIsCountedWhereItArrivesAndOnlyInItsSpan) {
  Here here;
  CoflowsPlan plan;
  plan.seconds = 0.4;
  plan.message = 1024;
  plan.coflows = {{{{0, 0.4}}, 3, 8e6, 0, 0}, {{{0.2, 0.3}}, 0, 8e6, 0, 0}};
  const auto arrivals = RunCoflows(plan, here.meeting(), here.transport());
  ASSERT_TRUE(arrivals.has_value()) << arrivals.error().message();
  ASSERT_EQ(arrivals->bytes.size(), 2u);
  EXPECT_EQ(arrivals->bytes[0].size(), 400u);
  EXPECT_EQ(arrivals->Between(1, 2, {0, 0.199}), 0) << "it had nothing to send";
  EXPECT_GT(arrivals->Between(0, 1, {0, 0.4}), 0);
  // A cap is never exceeded, however the host runs us: what is saved up is 5 ms or two pieces.
  EXPECT_LE(arrivals->Between(0, 1, {0, 0.4}), 1e6 * 0.405 + 4096);
  EXPECT_LE(arrivals->Between(1, 2, {0, 0.4}), 1e6 * 0.405 + 4096);
  ASSERT_EQ(arrivals->ended_s[1].size(), 1u);
  EXPECT_GE(arrivals->ended_s[1].front(), 0.3);
}

TEST(PerfCoflows, WhoHadWhatHasARowForEachStepAndAColumnForEachEntry) {
  Here here;
  const auto sheet = MeasureCoflows("2x1/8M,0@0.05-0.1", 0.2, 50, here.meeting(), here.transport());
  ASSERT_TRUE(sheet.has_value()) << sheet.error().message();
  EXPECT_EQ(sheet->rows.size(), 4u);
  EXPECT_EQ(sheet->columns.size(), 3u);
  EXPECT_EQ(sheet->columns[1].heading, "2x1/8M");
  EXPECT_EQ(sheet->curves.size(), 2u);
  EXPECT_EQ(MeasureCoflows("9", 1, 50, here.meeting(), here.transport()).error().code(), StatusCode::kInvalidArgument);
}

TEST(PerfCoflows, NoCoflowsOrTooManyAreNoPlan) {
  EXPECT_TRUE(PlanFromText("coflows 1024 64").has_value());
  EXPECT_FALSE(PlanFromText("coflows 1024 0").has_value());
  EXPECT_FALSE(PlanFromText("coflows 1024 65").has_value());
}

}  // namespace
}  // namespace weir::tools
