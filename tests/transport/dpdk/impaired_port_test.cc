// A port that is worse than the one below it, by as much as it was told.
#include "transport/dpdk/impaired_port.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace weir::transport::dpdk {
namespace {

/// Remembers the numbers that are in the frames it is given.
class Recorder final : public PacketPort {
 public:
  MacAddress mac() const noexcept override { return {}; }
  std::size_t frame_bytes() const noexcept override { return 1514; }
  std::byte* Reserve() noexcept override { return frame_.data(); }
  void Commit(std::size_t size) noexcept override {
    std::uint32_t number = 0;
    std::memcpy(&number, frame_.data() + size - 4, 4);
    seen.push_back(number);
  }
  void Flush() noexcept override {}
  std::size_t Receive(std::span<std::span<const std::byte>>) noexcept override { return 0; }

  std::vector<std::uint32_t> seen;

 private:
  std::array<std::byte, 1514> frame_{};
};

constexpr std::uint32_t kFrames = 20'000;

std::vector<std::uint32_t> Send(const Impairment& impairment) {
  Recorder recorder;
  ImpairedPort port(&recorder, impairment);
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    std::byte* frame = port.Reserve();
    std::memcpy(frame + 96, &i, 4);
    port.Commit(100);
    if (i % 16 == 0) port.Flush();
  }
  for (int i = 0; i < 256; ++i) port.Flush();
  return recorder.seen;
}

TEST(ImpairedPort, WithoutImpairmentAllGoesAsItCame) {
  const auto seen = Send({});
  ASSERT_EQ(seen.size(), kFrames);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(ImpairedPort, LosesTheShareThatItIsTold) {
  const auto seen = Send({10, 0, 0, 3});
  EXPECT_NEAR(static_cast<double>(kFrames - seen.size()), 0.01 * kFrames, 60);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(ImpairedPort, DoublesTheShareThatItIsTold) {
  const auto seen = Send({0, 10, 0, 3});
  EXPECT_NEAR(static_cast<double>(seen.size() - kFrames), 0.01 * kFrames, 60);
  EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), kFrames);
}

TEST(ImpairedPort, WhatIsReorderedComesLaterButComes) {
  const auto seen = Send({0, 0, 10, 3});
  ASSERT_EQ(seen.size(), kFrames);
  std::size_t overtaken = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (seen[i] >= seen[i - 1]) continue;
    overtaken++;
    EXPECT_LE(seen[i - 1] - seen[i], 40u);
  }
  EXPECT_NEAR(static_cast<double>(overtaken), 0.01 * kFrames, 60);
}

TEST(ImpairedPort, TheSameSeedIsTheSameFate) {
  EXPECT_EQ(Send({10, 10, 10, 3}), Send({10, 10, 10, 3}));
  EXPECT_NE(Send({10, 10, 10, 3}), Send({10, 10, 10, 4}));
}

}  // namespace
}  // namespace weir::transport::dpdk
