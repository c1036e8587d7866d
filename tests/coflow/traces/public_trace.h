#pragma once

#include <gtest/gtest.h>

#include "coflow/traces/reader.h"

namespace weir::traces {

/// Tests on the field's public trace. It is not part of the project: without it they say so and are skipped.
class PublicTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto trace = Load("FB2010-1Hr-150-0.txt");
    if (!trace && trace.error().code() == StatusCode::kNotFound) {
      GTEST_SKIP() << "FB2010-1Hr-150-0.txt is not in WEIR_TRACES";
    }
    ASSERT_TRUE(trace) << trace.error().message();
    trace_ = std::move(*trace);
  }

  Trace trace_;
};

}  // namespace weir::traces
