#include "transport/rdma/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "transport/rdma/device_rule.h"
#include "transport/rdma/port.h"

namespace weir::transport {
namespace {

/// Variables for as long as a test runs.
class Variables {
 public:
  explicit Variables(std::initializer_list<std::pair<const char*, const char*>> set) {
    for (const auto& [name, value] : set) {
      names_.emplace_back(name);
      setenv(name, value, 1);
    }
  }
  ~Variables() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

TEST(RdmaOptions, TheVariablesOfNcclAreHonoured) {
  const Variables set{{"NCCL_IB_HCA", "=mlx5_0:1"},
                      {"NCCL_IB_GID_INDEX", "3"},
                      {"NCCL_IB_SL", "4"},
                      {"NCCL_IB_TC", "106"},
                      {"NCCL_IB_TIMEOUT", "22"},
                      {"NCCL_IB_RETRY_CNT", "6"},
                      {"NCCL_IB_PKEY", "2"},
                      {"NCCL_IB_QPS_PER_CONNECTION", "4"},
                      {"NCCL_IB_ADDR_RANGE", "10.0.0.0/8"},
                      {"NCCL_IB_ROCE_VERSION_NUM", "1"},
                      {"NCCL_IB_ADDR_FAMILY", "AF_INET6"}};
  const auto options = RdmaOptionsFromEnvironment();
  ASSERT_TRUE(options.has_value()) << options.error().ToString();
  EXPECT_EQ(options->devices, "=mlx5_0:1");
  EXPECT_EQ(options->gid_index, 3);
  EXPECT_EQ(options->service_level, 4);
  EXPECT_EQ(options->traffic_classes, (std::vector<std::uint8_t>{106}));
  EXPECT_EQ(options->timeout, 22);
  EXPECT_EQ(options->retry_count, 6);
  EXPECT_EQ(options->pkey_index, 2);
  EXPECT_EQ(options->queue_pairs, 4u);
  EXPECT_EQ(options->subnet, "10.0.0.0/8");
  EXPECT_EQ(options->roce_version, 1);
  EXPECT_EQ(options->family, "AF_INET6");
  EXPECT_TRUE(CheckRdmaOptions(*options).ok());
}

TEST(RdmaOptions, WithoutVariablesTheDefaultsAreValid) {
  const auto options = RdmaOptionsFromEnvironment();
  ASSERT_TRUE(options.has_value());
  EXPECT_TRUE(CheckRdmaOptions(*options).ok());
  EXPECT_LT(options->gid_index, 0);
}

TEST(RdmaOptions, AVariableOutOfRangeIsNamedWithWhatIsAllowed) {
  for (const char* value : {"16", "-1", "four", "4 "}) {
    const Variables set{{"NCCL_IB_SL", value}};
    const auto options = RdmaOptionsFromEnvironment();
    ASSERT_FALSE(options.has_value()) << value;
    EXPECT_EQ(options.error().message(), std::string("NCCL_IB_SL: found \"") + value + "\", allowed: 0 to 15");
  }
}

TEST(RdmaOptions, WhatIsOutOfRangeIsRefused) {
  const auto refused = [](auto change) {
    RdmaOptions options;
    change(&options);
    return CheckRdmaOptions(options).code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->identity = "with blank"; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->identity = std::string(32, 'x'); }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->traffic_classes.clear(); }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->traffic_classes.assign(9, 0); }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->queue_pairs = 0; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) {
    o->queue_pairs = 3;
    o->traffic_classes.assign(8, 0);
  }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->roce_version = 3; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->family = "inet"; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->stripe_bytes = 100; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->window_bytes = 100; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->window_time = 0; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->requests = 4097; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->timeout = 0; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->retry_count = 8; }));
  EXPECT_TRUE(refused([](RdmaOptions* o) { o->dead_after = 1; }));
}

TEST(DeviceRule, PrefixesPortsExclusionAndWholeNames) {
  using rdma::DeviceRule;
  EXPECT_TRUE(DeviceRule("").Takes("mlx5_0", 1));
  EXPECT_TRUE(DeviceRule("mlx5").Takes("mlx5_10", 2));
  EXPECT_FALSE(DeviceRule("mlx5").Takes("rxe0", 1));
  EXPECT_TRUE(DeviceRule("rxe0,mlx5_1:2").Takes("mlx5_1", 2));
  EXPECT_FALSE(DeviceRule("rxe0,mlx5_1:2").Takes("mlx5_1", 1));
  EXPECT_FALSE(DeviceRule("=mlx5_1").Takes("mlx5_10", 1));
  EXPECT_TRUE(DeviceRule("=mlx5_1").Takes("mlx5_1", 1));
  EXPECT_FALSE(DeviceRule("^mlx5").Takes("mlx5_0", 1));
  EXPECT_TRUE(DeviceRule("^mlx5").Takes("rxe0", 1));
  EXPECT_TRUE(DeviceRule("^=mlx5_1").Takes("mlx5_10", 1));
}

TEST(PortSpeed, IsLanesTimesWhatEachDoes) {
  EXPECT_EQ(rdma::SpeedOf(32, 2), BitsPerSecond(100e9));
  EXPECT_EQ(rdma::SpeedOf(128, 2), BitsPerSecond(400e9));
  EXPECT_EQ(rdma::SpeedOf(0, 2), 0);
  EXPECT_EQ(rdma::SpeedOf(32, 3), 0);
}

}  // namespace
}  // namespace weir::transport
