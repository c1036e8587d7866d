// What every backend does at the edges: limits, misuse, and ends that come early.
#include <filesystem>
#include <iterator>

#include "tests/transport/conformance/backend.h"

namespace weir::transport {
namespace {

bool NamesBoth(const Status& status) {
  return status.message().find("left/1") != std::string::npos && status.message().find("right/2") != std::string::npos;
}

TEST_P(Conformance, DevicesSayWhatTheyCanDo) {
  ASSERT_FALSE(backend_->left().devices().empty());
  const Device& device = backend_->left().devices().front();
  EXPECT_FALSE(device.name.empty());
  EXPECT_EQ(device.requests, kRequests);
  EXPECT_EQ(device.slots, kMaxSlots);
  EXPECT_NE(device.memory_kinds & static_cast<int>(MemoryKind::kHost), 0);
}

TEST_P(Conformance, WhatDoesNotExistIsRefused) {
  EXPECT_EQ(backend_->left().Listen(99, 1).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(backend_->left().Listen(0, 0).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->left().Listen(0, kMaxSlots + 1).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->left().Connect(0, Handle{}, nullptr).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->left().Connect(99, Handle{}, nullptr).error().code(), StatusCode::kNotFound);
}

TEST_P(Conformance, MemoryIsRegisteredAndGivenBackOnce) {
  Pair pair = Connect();
  std::vector<std::byte> room(100);
  for (Channel* channel : {static_cast<Channel*>(pair.sender.get()), static_cast<Channel*>(pair.receiver.get())}) {
    const auto memory = channel->Register(room.data(), room.size(), MemoryKind::kHost);
    const auto inner = channel->Register(room.data() + 10, 20, MemoryKind::kHost);
    ASSERT_TRUE(memory.has_value() && inner.has_value());
    EXPECT_NE(*memory, *inner);
    EXPECT_TRUE(channel->Deregister(*memory).ok());
    EXPECT_EQ(channel->Deregister(*memory).code(), StatusCode::kNotFound);
    EXPECT_TRUE(channel->Deregister(*inner).ok());
    EXPECT_EQ(channel->Register(room.data(), 0, MemoryKind::kHost).error().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(channel->Register(room.data(), 1, MemoryKind::kCuda).error().code(), StatusCode::kUnsupported);
  }
}

TEST_P(Conformance, AFullTableOfRequestsIsTryAgain) {
  Pair pair = Connect();
  std::vector<std::byte> rooms(kRequests);
  std::vector<Request*> requests(kRequests + 1);
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    ASSERT_EQ(Receive(pair.receiver.get(), std::span(rooms).subspan(i, 1), &requests[i]), Outcome::kDone);
  }
  EXPECT_EQ(Receive(pair.receiver.get(), rooms, &requests[kRequests]), Outcome::kAgain);
  EXPECT_EQ(requests[kRequests], nullptr);
  Request* send = nullptr;
  ASSERT_EQ(Send(pair.sender.get(), std::span(rooms).first(1), 0, &send), Outcome::kDone);
  bool sent = false;
  EXPECT_TRUE(Until([&] {
    sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
    return pair.receiver->Test(requests[0], {}) == Outcome::kDone;
  }));
  EXPECT_EQ(Receive(pair.receiver.get(), std::span(rooms).first(1), &requests[0]), Outcome::kDone);
}

TEST_P(Conformance, ASenderThatIsFullSaysTryAgainAndThenGoesOn) {
  Pair pair = Connect();
  const auto data = Noise(1 << 20, 6);
  std::vector<Request*> sends;
  while (true) {
    Request* send = nullptr;
    const Outcome outcome = Send(pair.sender.get(), data, 0, &send);
    ASSERT_NE(outcome, Outcome::kFailed);
    if (outcome == Outcome::kAgain) break;
    sends.push_back(send);
    ASSERT_LE(sends.size(), kRequests);
  }
  EXPECT_EQ(sends.size(), kRequests);
  std::vector<std::byte> room(data.size());
  for (Request* send : sends) {
    Request* receive = nullptr;
    ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
    bool sent = false;
    bool received = false;
    ASSERT_TRUE(Until([&] {
      sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
      received = received || pair.receiver->Test(receive, {}) == Outcome::kDone;
      return sent && received;
    }));
    ASSERT_EQ(room, data);
  }
}

TEST_P(Conformance, AMessageThatIsTooLargeBreaksTheChannelAndSaysSo) {
  for (const std::uint32_t slots : {1u, 2u}) {
    Pair pair = Connect(slots);
    const auto data = Noise(100, 7);
    std::vector<std::byte> room(99);
    Request* receive = nullptr;
    Request* send = nullptr;
    ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
    Outcome sent = Outcome::kAgain;
    EXPECT_TRUE(Until([&] {
                  if (send == nullptr && sent == Outcome::kAgain) sent = Send(pair.sender.get(), data, 0, &send);
                  // Where the sender knows the room, it is the one to notice.
                  return sent == Outcome::kFailed || pair.receiver->Test(receive, {}) == Outcome::kFailed ||
                         (send != nullptr && pair.sender->Test(send, {}) == Outcome::kFailed);
                }) ||
                !pair.receiver->failure().ok());
    const Status& why = pair.receiver->failure().ok() ? pair.sender->failure() : pair.receiver->failure();
    EXPECT_EQ(why.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(why.message().find("larger than the room"), std::string::npos) << why.message();
    EXPECT_TRUE(NamesBoth(why)) << why.message();
  }
}

TEST_P(Conformance, MisuseBreaksTheChannelInsteadOfTheProcess) {
  Pair pair = Connect(2);
  Request* request = nullptr;
  EXPECT_EQ(pair.sender->Isend({}, 0, &request), Outcome::kFailed);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(pair.sender->failure().code(), StatusCode::kInvalidArgument);
  const std::vector<Slot> slots(3);
  EXPECT_EQ(pair.receiver->Irecv(slots, &request), Outcome::kFailed);
  EXPECT_EQ(pair.receiver->failure().code(), StatusCode::kInvalidArgument);
  Pair many = Connect();
  const std::vector<Part> parts(kMaxParts + 1);
  EXPECT_EQ(many.sender->Isend(parts, 0, &request), Outcome::kFailed);
}

TEST_P(Conformance, ClosingWithRequestsUnderWayIsNoticedByTheOtherEnd) {
  const auto data = Noise(8 << 20, 8);
  std::vector<std::byte> room(data.size());
  Request* send = nullptr;
  Request* receive = nullptr;
  {
    Pair pair = Connect();
    ASSERT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kDone);
    pair.receiver.reset();
    EXPECT_TRUE(Until([&] { return pair.sender->Test(send, {}) == Outcome::kFailed; }));
    EXPECT_TRUE(NamesBoth(pair.sender->failure())) << pair.sender->failure().message();
    EXPECT_EQ(pair.sender->failure().code(), StatusCode::kUnavailable);
    EXPECT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kFailed) << "it stays failed";
  }
  Pair pair = Connect();
  ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
  ASSERT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kDone);
  for (int i = 0; i < 3; ++i) {
    clock().Advance(20 * kMicrosecond);
    ASSERT_EQ(pair.sender->Test(send, {}), Outcome::kAgain) << "a message of 8 MiB does not fit into a socket";
  }
  pair.sender.reset();
  EXPECT_TRUE(Until([&] { return pair.receiver->Test(receive, {}) == Outcome::kFailed; }));
  EXPECT_TRUE(NamesBoth(pair.receiver->failure())) << pair.receiver->failure().message();
}

TEST_P(Conformance, ASenderWithNothingUnderWayNoticesThatItsPeerIsGone) {
  Pair pair = Connect();
  EXPECT_EQ(pair.sender->Look(), Outcome::kDone);
  pair.receiver.reset();
  EXPECT_TRUE(Until([&] { return pair.sender->Look() == Outcome::kFailed; }));
  EXPECT_EQ(pair.sender->failure().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(NamesBoth(pair.sender->failure())) << pair.sender->failure().message();
}

TEST_P(Conformance, WhatWasSentBeforeClosingStillArrives) {
  Pair pair = Connect();
  const auto data = Noise(5000, 9);
  std::vector<std::byte> room(data.size());
  Request* receive = nullptr;
  Request* send = nullptr;
  ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
  Request* later = nullptr;
  std::vector<std::byte> rest(10);
  ASSERT_EQ(Receive(pair.receiver.get(), rest, &later), Outcome::kDone);
  ASSERT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kDone);
  bool received = false;
  ASSERT_TRUE(Until([&] {
    // On some backends a send is done only when the other side has it.
    const bool done = pair.sender->Test(send, {}) == Outcome::kDone;
    if (!done) received = received || pair.receiver->Test(receive, {}) == Outcome::kDone;
    return done;
  }));
  pair.sender.reset();
  EXPECT_TRUE(Until([&] {
    received = received || pair.receiver->Test(receive, {}) == Outcome::kDone;
    return received;
  }));
  EXPECT_EQ(room, data);
  EXPECT_TRUE(Until([&] { return pair.receiver->Test(later, {}) == Outcome::kFailed; }));
}

std::ptrdiff_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST_P(Conformance, DescriptorsAreGivenBackHoweverAChannelEnds) {
  const auto data = Noise(1 << 20, 10);
  std::vector<std::byte> room(data.size());
  Pair stays = Connect();
  ASSERT_TRUE(Works(&stays));
  const std::ptrdiff_t before = OpenDescriptors();
  for (int i = 0; i < 6; ++i) {
    Pair pair = Connect();
    Request* send = nullptr;
    Request* receive = nullptr;
    ASSERT_EQ(Receive(pair.receiver.get(), room, &receive), Outcome::kDone);
    ASSERT_EQ(Send(pair.sender.get(), data, 0, &send), Outcome::kDone);
    if (i % 3 == 0) pair.receiver.reset();
    if (i % 3 == 1) pair.sender.reset();
    if (i % 3 == 2) {
      bool sent = false;
      ASSERT_TRUE(Until([&] {
        sent = sent || pair.sender->Test(send, {}) == Outcome::kDone;
        return pair.receiver->Test(receive, {}) == Outcome::kDone;
      }));
    }
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_TRUE(Works(&stays));
}

TEST_P(Conformance, AConnectionThatNobodyTakesCanBeGivenUp) {
  auto listener = backend_->right().Listen(0, 1);
  ASSERT_TRUE(listener.has_value());
  auto connector = backend_->left().Connect(0, (*listener)->handle(), nullptr);
  ASSERT_TRUE(connector.has_value());
  static_cast<void>((*connector)->Poll());
  connector->reset();
  listener->reset();
  Pair pair = Connect();
  EXPECT_TRUE(Works(&pair));
}

TEST_P(Conformance, AListenerMayGoOnceItsChannelIsThere) {
  Pair pair = Connect();  // Its listener is gone by now.
  EXPECT_TRUE(Works(&pair));
  EXPECT_TRUE(Works(&pair));
}

}  // namespace
}  // namespace weir::transport
