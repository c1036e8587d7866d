// On real verbs: two Soft-RoCE devices on the two ends of a cable, as tests/vm makes them.
#include <gtest/gtest.h>

#include "transport/rdma/port.h"
#include "transport/transport.h"

namespace weir::transport::rdma {
namespace {

TEST(RealPort, IsFoundWithItsAddressAndLimits) {
  const auto verbs = LoadVerbs();
  ASSERT_TRUE(verbs.has_value()) << verbs.error().ToString();
  std::vector<std::string> notes;
  RdmaOptions options;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  auto ports = OpenPorts(*verbs, &options);
  ASSERT_TRUE(ports.has_value()) << ports.error().ToString();
  ASSERT_EQ(ports->size(), 2u);
  Port& first = *ports->front();
  EXPECT_EQ(first.name(), "rxe0:1");
  EXPECT_TRUE(first.ethernet());
  EXPECT_GE(first.limits().parts, kMaxSlots);
  EXPECT_GE(first.limits().requests, 1024u);
  EXPECT_EQ(first.limits().rate_kbps_max, 0u) << "Soft-RoCE does not pace";
  EXPECT_FALSE(first.takes_dma_buf());
  const auto choice = first.Choose({});
  ASSERT_TRUE(choice.has_value()) << choice.error().ToString();
  EXPECT_EQ(choice->entry.type, GidType::kRoceV2);
  EXPECT_EQ(AddressOf(choice->entry.gid).ToString(), "10.77.0.1");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("rxe0:1: address 10.77.0.1 (RoCE v2, entry "), std::string::npos) << notes[0];
}

TEST(RealPort, TheRuleChoosesAndNamesWhatItLeftOut) {
  const auto verbs = LoadVerbs();
  ASSERT_TRUE(verbs.has_value());
  RdmaOptions options;
  options.devices = "=rxe1";
  const auto ports = OpenPorts(*verbs, &options);
  ASSERT_TRUE(ports.has_value());
  ASSERT_EQ(ports->size(), 1u);
  EXPECT_EQ(ports->front()->name(), "rxe1:1");
  options.devices = "mlx5";
  const auto none = OpenPorts(*verbs, &options);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), StatusCode::kNotFound);
  EXPECT_NE(none.error().message().find("rxe0:1 (not named), rxe1:1 (not named)"), std::string::npos)
      << none.error().message();
}

TEST(RealPort, MemoryIsRegisteredAndGivenBack) {
  const auto verbs = LoadVerbs();
  ASSERT_TRUE(verbs.has_value());
  const RdmaOptions options;
  const auto ports = OpenPorts(*verbs, &options);
  ASSERT_TRUE(ports.has_value());
  Registrations& registrations = ports->front()->registrations();
  std::vector<std::byte> memory(1 << 20);
  const auto held = registrations.Hold(memory.data(), memory.size(), Registrations::Use::kReceive);
  ASSERT_TRUE(held.has_value()) << held.error().ToString();
  EXPECT_NE((*held)->memory->rkey, 0u);
  registrations.Release(*held);
  EXPECT_EQ(registrations.ranges(), 0u);
}

}  // namespace
}  // namespace weir::transport::rdma
