#include "coflow/job.h"

#include <gtest/gtest.h>

#include "coflow/coflow.h"

namespace weir {
namespace {

TEST(JobClass, NamesAndClassesTranslateBothWays) {
  for (const JobClass each : {JobClass::kGuaranteed, JobClass::kBestEffort, JobClass::kScavenger}) {
    EXPECT_EQ(ParseJobClass(JobClassName(each)).value(), each);
  }
  EXPECT_EQ(JobClassName(static_cast<JobClass>(9)), "unknown");
}

TEST(JobClass, SayingNothingIsBestEffort) {
  EXPECT_EQ(ParseJobClass("").value(), JobClass::kBestEffort);
}

TEST(JobClass, UnknownNameIsRefusedWithWhatIsAllowed) {
  const auto result = ParseJobClass("Guaranteed");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().ToString(),
            "invalid argument: job class \"Guaranteed\" is not known; allowed: guaranteed, best-effort, scavenger");
}

TEST(JobClass, StrongerClassIsSmaller) {
  EXPECT_LT(JobClass::kGuaranteed, JobClass::kBestEffort);
  EXPECT_LT(JobClass::kBestEffort, JobClass::kScavenger);
}

TEST(CoflowKey, DiffersByEveryPart) {
  const CoflowKey key{JobId(1), 2, Function::kAllReduce, 3};
  EXPECT_EQ(key, (CoflowKey{JobId(1), 2, Function::kAllReduce, 3}));
  EXPECT_NE(key, (CoflowKey{JobId(2), 2, Function::kAllReduce, 3}));
  EXPECT_NE(key, (CoflowKey{JobId(1), 9, Function::kAllReduce, 3}));
  EXPECT_NE(key, (CoflowKey{JobId(1), 2, Function::kAllGather, 3}));
  EXPECT_LT(key, (CoflowKey{JobId(1), 2, Function::kAllReduce, 4}));
}

TEST(CoflowFunction, EveryOneHasAName) {
  EXPECT_EQ(FunctionName(Function::kAllReduce), "all-reduce");
  EXPECT_EQ(FunctionName(Function::kSend), "send");
}

}  // namespace
}  // namespace weir
