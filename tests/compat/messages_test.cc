// The bytes of every message as version 1 wrote them, kept in golden/. A later version must still read them, and must
// still write them for the same content while it says that it speaks version 1.
//
// To add a message: write it in Messages(), run compat_test with WEIR_WRITE_GOLDEN=1, and commit the new file. A file
// that exists is never written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "coflow/wire/frame.h"
#include "coflow/wire/weir.pb.h"

namespace weir::wire {
namespace {

struct Golden {
  std::string name;
  std::string payload;  ///< As this version writes it.
};

Golden FromAgent(std::string name, const std::function<void(AgentMessage&)>& fill) {
  AgentMessage message;
  fill(message);
  return {std::move(name), message.SerializeAsString()};
}

Golden FromCoordinator(std::string name, const std::function<void(CoordinatorMessage&)>& fill) {
  CoordinatorMessage message;
  fill(message);
  return {std::move(name), message.SerializeAsString()};
}

void FillHello(AgentMessage& message) {
  Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(1);
  hello.set_host("d0h0");
  hello.set_instance(0x1122334455667788);
  hello.add_addresses("10.200.0.10");
  hello.add_addresses("fd00::10");
  hello.set_version("0.1.0");
  hello.add_features("progress");
}

void FillProcessAttached(AgentMessage& message) {
  ProcessAttached& attached = *message.mutable_process_attached();
  attached.set_process(3);
  attached.mutable_job()->set_name("resnet");
  attached.mutable_job()->set_tenant("vision");
  attached.mutable_job()->set_job_class("guaranteed");
  attached.mutable_job()->set_weight(2.5);
  attached.mutable_job()->set_gpus(8);
  attached.set_pid(4711);
  attached.set_adopted(true);
}

void FillLaneOpened(AgentMessage& message) {
  message.mutable_lane_opened()->set_lane(5);
  message.mutable_lane_opened()->set_process(3);
  message.mutable_lane_opened()->set_peer_address("10.201.0.10");
}

void FillDemand(AgentMessage& message) {
  message.mutable_demand_update()->set_now_ns(1'000'000'007);
  LaneDemand& lane = *message.mutable_demand_update()->add_lanes();
  lane.set_lane(5);
  lane.set_active(true);
  lane.set_bytes_sent(4'000'000);
  lane.set_bytes_waiting(1'500'000);
  lane.set_sockets_active(2);
  lane.set_held_ns(12'000'000);
  lane.set_due_known(true);
  lane.set_due_in_ns(-3'000'000);
  lane.set_overlapped(true);
  lane.set_bytes_ahead(2'500'000);
}

void FillProfile(AgentMessage& message) {
  ProfileUpdate& profile = *message.mutable_profile_update();
  profile.set_process(3);
  profile.set_iteration(17);
  profile.set_iteration_started_ns(900'000'000);
  profile.set_now_ns(1'000'000'007);
  profile.set_period_ns(700'000'000);
  profile.set_alone_ns(650'000'000);
  profile.set_confidence(0.75);
  profile.set_bytes_total(4'000'000);
  profile.set_bytes_left(1'500'000);
  LaneBytes& lane = *profile.add_lanes();
  lane.set_lane(5);
  lane.set_bytes(4'000'000);
  lane.set_bytes_left(1'500'000);
}

void FillApplied(AgentMessage& message) {
  message.mutable_applied()->set_epoch(42);
  message.mutable_applied()->set_sequence(9);
  RefusedDirective& refused = *message.mutable_applied()->add_refused();
  refused.set_lane(6);
  refused.set_reason("no such lane");
}

void FillSchedule(CoordinatorMessage& message) {
  Schedule& schedule = *message.mutable_schedule();
  schedule.set_epoch(42);
  schedule.set_sequence(9);
  schedule.set_full(true);
  schedule.set_ttl_ms(2000);
  Directive& hold = *schedule.add_directives();
  hold.set_lane(5);
  hold.set_gate(GATE_HOLD);
  hold.set_rate(11'875'000);
  hold.set_level(3);
  hold.set_progress(true);
  Directive& unmanaged = *schedule.add_directives();
  unmanaged.set_lane(6);
  unmanaged.set_unmanaged(true);
}

std::vector<Golden> Messages() {
  return {
      FromAgent("hello", FillHello),
      FromAgent("heartbeat", [](AgentMessage& m) { m.mutable_heartbeat()->set_now_ns(1'000'000'007); }),
      FromAgent("process_attached", FillProcessAttached),
      FromAgent("process_detached", [](AgentMessage& m) { m.mutable_process_detached()->set_process(3); }),
      FromAgent("lane_opened", FillLaneOpened),
      FromAgent("lane_closed", [](AgentMessage& m) { m.mutable_lane_closed()->set_lane(5); }),
      FromAgent("demand_update", FillDemand),
      FromAgent("profile_update", FillProfile),
      FromAgent("applied", FillApplied),
      FromCoordinator("welcome",
                      [](CoordinatorMessage& m) {
                        m.mutable_welcome()->set_epoch(42);
                        m.mutable_welcome()->set_protocol_version(1);
                        m.mutable_welcome()->set_heartbeat_ms(100);
                        m.mutable_welcome()->set_ttl_ms(2000);
                      }),
      FromCoordinator("welcome_host_unknown",
                      [](CoordinatorMessage& m) {
                        m.mutable_welcome()->set_epoch(42);
                        m.mutable_welcome()->set_host_unknown(true);
                      }),
      FromCoordinator("schedule", FillSchedule),
      FromCoordinator("refuse",
                      [](CoordinatorMessage& m) {
                        m.mutable_refuse()->set_code(8);
                        m.mutable_refuse()->set_reason("not supported");
                      }),
      FromCoordinator("pong",
                      [](CoordinatorMessage& m) {
                        m.mutable_pong()->set_epoch(42);
                        m.mutable_pong()->set_agent_now_ns(1'000'000'007);
                      }),
  };
}

std::filesystem::path GoldenPath(const std::string& name) {
  return std::filesystem::path(WEIR_SOURCE_DIR) / "tests/compat/golden" / ("v1-" + name + ".bin");
}

std::string ReadGolden(const std::string& name) {
  std::ifstream file(GoldenPath(name), std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void WriteGolden(const Golden& golden) {
  if (std::filesystem::exists(GoldenPath(golden.name))) return;
  std::string frame;
  AppendFrame(golden.payload, &frame);
  std::ofstream(GoldenPath(golden.name), std::ios::binary) << frame;
}

TEST(WireVersion1, EveryMessageIsReadAndWrittenAsItWas) {
  for (const Golden& golden : Messages()) {
    if (std::getenv("WEIR_WRITE_GOLDEN") != nullptr) WriteGolden(golden);  // NOLINT(concurrency-mt-unsafe)
    const std::string bytes = ReadGolden(golden.name);
    ASSERT_FALSE(bytes.empty()) << "missing " << GoldenPath(golden.name);
    const auto frame = NextFrame(bytes);
    ASSERT_TRUE(frame) << golden.name << ": " << frame.error().message();
    ASSERT_TRUE(frame->complete) << golden.name;
    EXPECT_EQ(frame->size, bytes.size()) << golden.name;
    EXPECT_EQ(frame->payload, golden.payload) << golden.name;
  }
}

TEST(WireVersion1, EveryKindOfMessageHasAGoldenFile) {
  std::vector<bool> agent(16);
  std::vector<bool> coordinator(16);
  const std::vector<Golden> messages = Messages();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& payload = messages[i].payload;
    // The field number of the oneof is the message's kind.
    const auto kind = static_cast<std::size_t>(static_cast<unsigned char>(payload.at(0)) >> 3);
    (i < 9 ? agent : coordinator).at(kind) = true;
  }
  EXPECT_EQ(std::count(agent.begin(), agent.end(), true), 9);
  EXPECT_EQ(std::count(coordinator.begin(), coordinator.end(), true), 4);
}

TEST(WireVersion1, FieldsOfALaterVersionAreSkipped) {
  AgentMessage message;
  FillHello(message);
  std::string payload = message.SerializeAsString();
  payload += "\xfa\x3e\x03xyz";  // Field 1007 of AgentMessage: text "xyz".
  AgentMessage read;
  ASSERT_TRUE(read.ParseFromString(payload));
  EXPECT_EQ(read.hello().host(), "d0h0");
}

TEST(WireVersion1, TextThatIsNoUtf8IsRefusedWithoutALineInTheLog) {
  std::string frame;
  AppendFrame("\x0a\x04\x12\x02\xff\xff", &frame);  // A Hello whose host is two bytes 0xff.
  AgentMessage read;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(read.ParseFromString(std::string(NextFrame(frame).value().payload)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(WireVersion1, KindOfALaterVersionIsSeenAsUnknown) {
  AgentMessage read;
  ASSERT_TRUE(read.ParseFromString("\xfa\x3e\x03xyz"));
  EXPECT_EQ(read.kind_case(), AgentMessage::KIND_NOT_SET);
}

}  // namespace
}  // namespace weir::wire
