#include "tools/weir-sim/recorder.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::tools {
namespace {

using scheduler::Fabric;
using scheduler::LinkUse;

TEST(RunRecorder, UtilisationIsWhatMovedHoweverLongTheRun) {
  for (const std::int64_t length : {std::int64_t{1'000}, std::int64_t{10'000'000}, std::int64_t{4'000'000'000'000}}) {
    RunRecorder recorder(2, Fabric::BigSwitch(2));
    const std::int64_t start = 77;
    recorder.OnStart(0, start);
    const std::vector<LinkUse> half{{0, 0, 0.5}, {0, 3, 0.5}};
    const std::vector<LinkUse> full{{0, 0, 0.25}, {1, 0, 0.75}, {1, 2, 0.75}};
    recorder.OnInterval(start, start + length / 2, half);
    recorder.OnInterval(start + length / 2, start + length, full);
    recorder.OnEnd(0, start + length);
    EXPECT_LE(recorder.bins(), 256U);
    EXPECT_GE(recorder.bins(), length < 10'000 ? 1U : 128U);
    EXPECT_NEAR(recorder.Utilisation(0), 0.75, 1e-9);
    EXPECT_NEAR(recorder.Utilisation(1), 0, 1e-9);
    EXPECT_NEAR(recorder.Utilisation(2), 0.375, 1e-9);
    EXPECT_NEAR(recorder.Utilisation(3), 0.25, 1e-9);
    if (recorder.bins() > 1) {
      EXPECT_NEAR(recorder.Utilisation(0, 0), 0.5, 1e-9);
      EXPECT_NEAR(recorder.Utilisation(0, recorder.bins() - 1), 1, 1e-9);
      EXPECT_NEAR(recorder.PortUtilisation(0), 0.25, 1e-9);
    }
    EXPECT_EQ(recorder.service(0).first, start);
    EXPECT_EQ(recorder.service(0).ticks, length);
    EXPECT_EQ(recorder.service(1).first, start + length / 2);
    EXPECT_EQ(recorder.service(1).ticks, length / 2);
  }
}

TEST(RunRecorder, MemoryIsBoundedWithManyLinks) {
  const RunRecorder recorder(1, Fabric::BigSwitch(65'536));
  EXPECT_EQ(recorder.bins(), 0U);
  EXPECT_EQ(recorder.links(), 131'072U);
}

}  // namespace
}  // namespace weir::tools
