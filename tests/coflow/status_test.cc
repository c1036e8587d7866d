#include "coflow/status.h"

#include <gtest/gtest.h>

#include "coflow/check.h"
#include "coflow/ids.h"
#include "coflow/units.h"

namespace weir {
namespace {

TEST(Status, OkSaysSoAndErrorsNameTheirCode) {
  EXPECT_TRUE(Status::Ok().ok());
  EXPECT_EQ(Status::Ok().ToString(), "ok");
  EXPECT_EQ(Status(StatusCode::kNotFound, "no such link").ToString(), "not found: no such link");
  EXPECT_FALSE(Status(StatusCode::kNotFound, "").ok());
}

TEST(Status, EveryCodeHasItsOwnName) {
  EXPECT_EQ(StatusCodeName(StatusCode::kOk), "ok");
  EXPECT_EQ(StatusCodeName(StatusCode::kInvalidArgument), "invalid argument");
  EXPECT_EQ(StatusCodeName(StatusCode::kAlreadyExists), "already exists");
  EXPECT_EQ(StatusCodeName(StatusCode::kPermissionDenied), "permission denied");
  EXPECT_EQ(StatusCodeName(StatusCode::kResourceExhausted), "limit reached");
  EXPECT_EQ(StatusCodeName(StatusCode::kUnavailable), "unavailable");
  EXPECT_EQ(StatusCodeName(StatusCode::kProtocol), "protocol error");
  EXPECT_EQ(StatusCodeName(StatusCode::kUnsupported), "not supported here");
  EXPECT_EQ(StatusCodeName(StatusCode::kInternal), "internal error");
  EXPECT_EQ(StatusCodeName(static_cast<StatusCode>(99)), "unknown");
}

TEST(Status, OnlyWhatPassesByItselfIsRetryable) {
  EXPECT_TRUE(Status(StatusCode::kUnavailable, "").Retryable());
  EXPECT_TRUE(Status(StatusCode::kResourceExhausted, "").Retryable());
  EXPECT_FALSE(Status(StatusCode::kInvalidArgument, "").Retryable());
  EXPECT_FALSE(Status::Ok().Retryable());
}

TEST(Result, HoldsAValueOrTheError) {
  const Result<int> good = 7;
  const Result<int> bad = Error(StatusCode::kInternal, "broken");
  EXPECT_EQ(good.value(), 7);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().ToString(), "internal error: broken");
}

TEST(Check, FalseConditionAbortsWithTheCondition) {
  EXPECT_DEATH(WEIR_CHECK(1 + 1 == 3), "status_test.cc:.*check failed: 1 \\+ 1 == 3");
}

TEST(Id, ZeroMeansNoneAndKindsDoNotMix) {
  EXPECT_FALSE(HostId());
  EXPECT_TRUE(HostId(1));
  EXPECT_LT(HostId(1), HostId(2));
  static_assert(!std::is_convertible_v<HostId, LinkId> && !std::is_convertible_v<std::uint64_t, HostId>);
}

TEST(Units, ConversionsKeepTheirUnits) {
  EXPECT_DOUBLE_EQ(BitsPerSecond(100e6), 12.5e6);
  EXPECT_DOUBLE_EQ(ToSeconds(250 * kMillisecond), 0.25);
  EXPECT_DOUBLE_EQ(TransferNanoseconds(12.5e6, BitsPerSecond(100e6)), 1e9);
}

}  // namespace
}  // namespace weir
