#include "transport/rdma/registrations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace weir::transport::rdma {
namespace {

/// A device that remembers what is registered with it.
struct FakeDevice {
  std::set<ibv_mr*> registered;
  int refuse_with = 0;
  bool knows_dma_buf = true;
  int last_access = 0;
  std::size_t last_size = 0;
};
FakeDevice* device = nullptr;

ibv_mr* Made(std::size_t size, int access) {
  if (device->refuse_with != 0) {
    errno = device->refuse_with;
    return nullptr;
  }
  device->last_size = size;
  device->last_access = access;
  return *device->registered.insert(new ibv_mr{}).first;
}

Verbs FakeVerbs() {
  Verbs verbs;
  verbs.reg_mr = [](ibv_pd*, void*, std::size_t size, int access) { return Made(size, access); };
  verbs.reg_dmabuf_mr = [](ibv_pd*, std::uint64_t, std::size_t size, std::uint64_t, int fd, int access) -> ibv_mr* {
    if (!device->knows_dma_buf || fd < 0) {
      errno = device->knows_dma_buf ? EBADF : EOPNOTSUPP;
      return nullptr;
    }
    return Made(size, access);
  };
  verbs.dereg_mr = [](ibv_mr* memory) {
    EXPECT_EQ(device->registered.erase(memory), 1u) << "given back twice";
    delete memory;
    return 0;
  };
  return verbs;
}

class RegistrationsTest : public testing::Test {
 protected:
  RegistrationsTest() { device = &device_; }
  ~RegistrationsTest() override {
    EXPECT_TRUE(device_.registered.empty()) << "everything is given back in the end";
    device = nullptr;
  }
  FakeDevice device_;
  Verbs verbs_ = FakeVerbs();
  std::vector<std::byte> memory_ = std::vector<std::byte>(10 * 4096);
};

using Use = Registrations::Use;

TEST_F(RegistrationsTest, WholePagesAreRegisteredOnceForAllWhoHoldThem) {
  Registrations registrations(&verbs_, nullptr, "fake:1");
  auto* one = registrations.Hold(memory_.data(), memory_.size(), Use::kReceive).value();
  EXPECT_EQ(one->begin % 4096, 0u);
  EXPECT_EQ(one->end % 4096, 0u);
  EXPECT_LE(one->begin, reinterpret_cast<std::uint64_t>(memory_.data()));
  auto* other = registrations.Hold(memory_.data() + 1, memory_.size() - 2, Use::kReceive).value();
  EXPECT_EQ(one, other);
  EXPECT_EQ(device_.registered.size(), 1u);
  EXPECT_EQ(registrations.bytes(), one->end - one->begin);
  registrations.Release(one);
  EXPECT_EQ(device_.registered.size(), 1u) << "the other still holds it";
  registrations.Release(other);
  EXPECT_EQ(device_.registered.size(), 0u) << "nothing is kept that nobody holds";
  EXPECT_EQ(registrations.ranges(), 0u);
  EXPECT_EQ(registrations.bytes(), 0u);
}

TEST_F(RegistrationsTest, ANeighbourOnTheSamePageDoesNotKeepWhatWasGivenBack) {
  Registrations registrations(&verbs_, nullptr, "fake:1");
  auto* large = registrations.Hold(memory_.data(), memory_.size(), Use::kReceive).value();
  ibv_mr* const old = large->memory;
  auto* neighbour = registrations.Hold(memory_.data() + memory_.size() - 1, 1, Use::kReceive).value();
  registrations.Release(large);  // And its memory is unmapped, but for the page that the neighbour is on.
  EXPECT_EQ(device_.registered.count(old), 0u);
  auto* again = registrations.Hold(memory_.data(), memory_.size(), Use::kReceive).value();
  EXPECT_NE(again, neighbour) << "there are other pages now, which the device must be told";
  EXPECT_EQ(device_.registered.size(), 2u);
  registrations.Release(again);
  registrations.Release(neighbour);
}

TEST_F(RegistrationsTest, WhatIsSentIsNotForThePeerToWrite) {
  Registrations registrations(&verbs_, nullptr, "fake:1");
  auto* sent = registrations.Hold(memory_.data(), 10, Use::kSend).value();
  EXPECT_EQ(device_.last_access, 0);
  auto* received = registrations.Hold(memory_.data(), 10, Use::kReceive).value();
  EXPECT_EQ(device_.last_access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  EXPECT_NE(sent, received);
  registrations.Release(sent);
  registrations.Release(received);
}

TEST_F(RegistrationsTest, WhatIsHeldIsFoundWhateverWasHeldAndGivenBackAround) {
  // Against the plain rule, in random order: a range is registered if and only if nobody holds it.
  Registrations registrations(&verbs_, nullptr, "fake:1");
  std::mt19937 random(7);
  std::vector<Registrations::Entry*> held;
  auto* const base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      registrations.Release(held.back());
      held.pop_back();
      continue;
    }
    const auto begin = reinterpret_cast<std::uint64_t>(base) + random() % 40 * 4096;
    const std::uint64_t size = (1 + random() % 12) * 4096;
    const Use use = random() % 2 == 0 ? Use::kSend : Use::kReceive;
    const bool known = std::any_of(held.begin(), held.end(), [&](const Registrations::Entry* entry) {
      return entry->use == use && entry->begin == begin && entry->end == begin + size;
    });
    const std::size_t before = device_.registered.size();
    auto* entry = registrations.Hold(reinterpret_cast<const void*>(begin), size, use).value();
    ASSERT_EQ(device_.registered.size(), before + (known ? 0 : 1)) << "step " << i;
    ASSERT_TRUE(entry->begin == begin && entry->end == begin + size && entry->use == use) << "step " << i;
    held.push_back(entry);
  }
  for (Registrations::Entry* entry : held) registrations.Release(entry);
  EXPECT_EQ(registrations.ranges(), 0u);
  EXPECT_EQ(registrations.bytes(), 0u);
}

TEST_F(RegistrationsTest, AFullDeviceSaysWhatIsRegisteredAndWhatToDo) {
  Registrations registrations(&verbs_, nullptr, "fake:1");
  device_.refuse_with = ENOMEM;
  const auto refused = registrations.Hold(memory_.data(), 10, Use::kSend);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.error().message().find("0 bytes are registered"), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().message().find("ulimit -l unlimited"), std::string::npos);
  device_.refuse_with = EFAULT;
  EXPECT_EQ(registrations.Hold(memory_.data(), 10, Use::kSend).error().code(), StatusCode::kInvalidArgument);
}

TEST_F(RegistrationsTest, DmaBufIsTakenWhereTheDeviceTakesIt) {
  Registrations registrations(&verbs_, nullptr, "fake:1");
  EXPECT_TRUE(registrations.takes_dma_buf());
  auto* held = registrations.HoldDmaBuf(7, 100, memory_.data(), 12345, Use::kReceive).value();
  EXPECT_EQ(device_.last_size, 12345u);
  auto* host = registrations.Hold(memory_.data(), 10, Use::kReceive).value();
  EXPECT_NE(held, host) << "memory of a GPU is not memory of the host, whatever its address";
  registrations.Release(held);
  registrations.Release(host);
}

TEST_F(RegistrationsTest, DmaBufIsRefusedWhereDeviceOrLibraryCannot) {
  device_.knows_dma_buf = false;
  const Registrations old_device(&verbs_, nullptr, "fake:1");
  EXPECT_FALSE(old_device.takes_dma_buf());
  verbs_.reg_dmabuf_mr = nullptr;
  Registrations old_library(&verbs_, nullptr, "fake:1");
  EXPECT_EQ(old_library.HoldDmaBuf(7, 0, memory_.data(), 10, Use::kSend).error().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace weir::transport::rdma
