#include "coflow/directive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weir {
namespace {

Directive Good() {
  return {.lane = LaneId(7), .gate = Gate::kHold, .rate = 1e6, .level = 7, .epoch = 1, .sequence = 2, .ttl = kSecond};
}

std::string Complaint(const Directive& directive) {
  const Status status = CheckDirective(directive);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return status.message();
}

TEST(DirectiveCheck, LimitsThemselvesAreAllowed) {
  EXPECT_TRUE(CheckDirective(Good()).ok());
  Directive directive = Good();
  directive.rate = 0;
  directive.level = 0;
  directive.ttl = 1;
  EXPECT_TRUE(CheckDirective(directive).ok());
  directive.rate = kDirectiveRateMax;
  EXPECT_TRUE(CheckDirective(directive).ok());
}

TEST(DirectiveCheck, NoLaneIsRefused) {
  Directive directive = Good();
  directive.lane = LaneId();
  EXPECT_EQ(Complaint(directive), "directive for lane 0: no lane is named; lanes count from 1");
}

TEST(DirectiveCheck, ImpossibleRateIsRefused) {
  for (const double rate : {-1.0, kDirectiveRateMax * 1.1, std::numeric_limits<double>::infinity(), std::nan("")}) {
    Directive directive = Good();
    directive.rate = rate;
    EXPECT_NE(Complaint(directive).find("allowed: 0 (no cap) to 1"), std::string::npos) << rate;
  }
}

TEST(DirectiveCheck, LevelBeyondTheLastIsRefused) {
  Directive directive = Good();
  directive.level = 8;
  EXPECT_EQ(Complaint(directive), "directive for lane 7: level = 8; allowed: 0 to 7");
}

TEST(DirectiveCheck, TimeToLiveOfNothingIsRefused) {
  Directive directive = Good();
  directive.ttl = 0;
  EXPECT_EQ(Complaint(directive), "directive for lane 7: ttl = 0 ns; must be above 0");
}

}  // namespace
}  // namespace weir
