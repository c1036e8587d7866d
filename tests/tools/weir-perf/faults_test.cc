#include "tools/weir-perf/faults.h"

#include <gtest/gtest.h>

#include <sstream>

namespace weir::tools {
namespace {

using End = FaultResult::End;

FaultResult Seen(Fault fault, End end, Nanoseconds after, Nanoseconds bound) {
  FaultResult result;
  result.fault = fault;
  result.end = end;
  result.after = after;
  result.bound = bound;
  return result;
}

TEST(Faults, AreNamedOneByOneOrAllAtOnce) {
  EXPECT_EQ(*FaultsFromNames("flap,kill"), (std::vector<Fault>{Fault::kFlap, Fault::kKill}));
  const std::vector<Fault> all{Fault::kKill, Fault::kFreeze, Fault::kCut, Fault::kFlap, Fault::kLoss};
  EXPECT_EQ(*FaultsFromNames("all"), all);
  for (const Fault fault : all) EXPECT_EQ(*FaultsFromNames(FaultName(fault)), std::vector<Fault>{fault});
  for (const char* names : {"", "kill,", "Kill", "all,kill", "fire"}) {
    const auto faults = FaultsFromNames(names);
    ASSERT_FALSE(faults.has_value()) << names;
    EXPECT_EQ(faults.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(faults.error().message().find("allowed: all, or some of kill,freeze,cut,flap,loss"), std::string::npos);
  }
}

TEST(Faults, APeerThatIsGoneMustBeDeclaredDeadWithinTheBound) {
  for (const Fault fault : {Fault::kKill, Fault::kCut}) {
    EXPECT_EQ(Verdict(Seen(fault, End::kPeerDead, kSecond, kSecond)), "yes");
    EXPECT_EQ(Verdict(Seen(fault, End::kPeerDead, kSecond + 1, kSecond)), "late");
    EXPECT_EQ(Verdict(Seen(fault, End::kPeerDead, -1, kSecond)), "no") << "it was dead before anything was done";
    for (const End end : {End::kWentOn, End::kWrongBytes, End::kHung}) {
      EXPECT_EQ(Verdict(Seen(fault, end, -1, kSecond)), "no");
    }
  }
}

TEST(Faults, WhatPassesMustNotEndTheJob) {
  for (const Fault fault : {Fault::kFreeze, Fault::kFlap, Fault::kLoss}) {
    EXPECT_EQ(Verdict(Seen(fault, End::kWentOn, kMillisecond, -1)), "yes");
    for (const End end : {End::kPeerDead, End::kWrongBytes, End::kHung}) {
      EXPECT_EQ(Verdict(Seen(fault, end, 0, -1)), "no");
    }
  }
}

TEST(Faults, AreReportedWithWhatWasDoneAndWhatCameOfIt) {
  FaultResult cut = Seen(Fault::kCut, End::kPeerDead, 400'500'000, 500 * kMillisecond);
  cut.done = "link cut";
  cut.bytes = 20'000'000;
  cut.message = "the link is dead";
  FaultResult skipped;
  skipped.fault = Fault::kLoss;
  skipped.message = "not permitted";
  std::ostringstream out;
  PrintSheet(FaultsSheet({cut, skipped}), PerfOutput::kCsv, &out);
  EXPECT_EQ(out.str(),
            "scenario,done,outcome,after_ms,bound_ms,bytes_compared,right,message\n"
            "cut,link cut,peer declared dead,400.500,500.000,20000000,yes,the link is dead\n"
            "loss,,skipped,-1.000,-1.000,0,skipped,not permitted\n");
}

}  // namespace
}  // namespace weir::tools
