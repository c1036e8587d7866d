#include "transport/rdma/verbs.h"

#include <gtest/gtest.h>

#include "transport/rdma/port.h"

namespace weir::transport::rdma {
namespace {

TEST(LoadVerbs, AnAbsentLibraryIsNamedWithItsPackage) {
  const auto verbs = LoadVerbsFrom("libnot-there.so.1");
  ASSERT_FALSE(verbs.has_value());
  EXPECT_EQ(verbs.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(verbs.error().message().find("libnot-there.so.1"), std::string::npos);
  EXPECT_NE(verbs.error().message().find("package libibverbs1"), std::string::npos);
}

TEST(LoadVerbs, ALibraryWithoutTheFunctionsIsRefusedByTheFirstOne) {
  const auto verbs = LoadVerbsFrom("libm.so.6");
  ASSERT_FALSE(verbs.has_value());
  EXPECT_NE(verbs.error().message().find("has no function ibv_get_device_list"), std::string::npos);
}

TEST(OpenPorts, AHostWithoutDevicesSaysHowToGetOne) {
  Verbs verbs;
  verbs.get_device_list = [](int* count) -> ibv_device** {
    *count = 0;
    return nullptr;
  };
  const RdmaOptions options;
  const auto ports = OpenPorts(&verbs, &options);
  ASSERT_FALSE(ports.has_value());
  EXPECT_EQ(ports.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(ports.error().message().find("rdma link add"), std::string::npos);
}

}  // namespace
}  // namespace weir::transport::rdma
