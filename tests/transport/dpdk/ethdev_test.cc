// Opening ports of DPDK: what is refused, and what of the process stays as it was.
#include "transport/dpdk/ethdev/ethdev.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

namespace weir::transport::dpdk {
namespace {

std::string Refusal(const EthdevSettings& settings) {
  const auto port = OpenEthdev(settings);
  return port ? "opened" : port.error().message();
}

TEST(Ethdev, SettingsOutOfRangeAreRefusedByName) {
  EXPECT_EQ(Refusal({"eth0"}), "device: found \"eth0\", allowed: net_DRIVERn,ARGUMENT=VALUE,...");
  EXPECT_EQ(Refusal({"net_memif0", {}, 100}), "mtu: found 100, allowed: 562 to 9000");
  EXPECT_EQ(Refusal({"net_memif0", {}, 0, 1}), "descriptors: found 1, allowed: 64 to 4096");
  EXPECT_EQ(Refusal({"net_memif0", {}, 0, 64, 1}), "memory_mb: found 1, allowed: 16 to 65536");
}

TEST(Ethdev, ADeviceThatIsNotThereIsRefusedAndTheProcessStaysAsItWas) {
  cpu_set_t cores_before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores_before), &cores_before), 0);
  struct sigaction before[32] = {};
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &before[number]);

  const std::string why = Refusal({"net_nothing0"});
  EXPECT_NE(why.find("device \"net_nothing0\": "), std::string::npos) << why;
  EXPECT_EQ(Refusal({"net_nothing0"}), why) << "EAL is not started a second time";

  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  EXPECT_TRUE(CPU_EQUAL(&cores, &cores_before));
  for (int number = 1; number < 32; ++number) {
    struct sigaction now = {};
    sigaction(number, nullptr, &now);
    EXPECT_EQ(now.sa_handler, before[number].sa_handler) << "signal " << number;
  }
}

}  // namespace
}  // namespace weir::transport::dpdk
