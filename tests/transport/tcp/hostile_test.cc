// A peer that has the handle and then breaks the protocol: the channel fails with the reason, and nothing else happens.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/fake/manual_clock.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/wire.h"

namespace weir::transport::tcp {
namespace {

class TcpHostile : public testing::Test {
 protected:
  static constexpr std::uint8_t kStreams = 2;

  void Connect(std::uint32_t slots = 1) {
    TcpOptions options;
    options.identity = "right/2";
    const auto lo = SelectInterfaces(*ListInterfaces(), "=lo", "AF_INET");
    const auto listener = std::move(TcpListener::Start(options, lo->front(), slots, &clock_).value());
    const Place place = *DecodeHandle(listener->handle());
    for (std::uint8_t i = 0; i <= kStreams; ++i) {
      peers_.push_back(std::move(ConnectTo(SocketAddress::Of(place.address, place.port, 0), nullptr).value()));
      Say(i, EncodeHello({place.nonce, Nonce{}, i, kStreams, "bad/1"}));
    }
    for (int i = 0; i < 1'000'000 && receiver_ == nullptr; ++i) receiver_ = std::move(listener->Accept().value());
    ASSERT_NE(receiver_, nullptr);
    const Slot slot{room_.data(), room_.size(), 0, {}};
    ASSERT_EQ(receiver_->Irecv(std::span(&slot, 1), &request_), Outcome::kDone);
  }

  void Say(std::size_t stream, std::span<const std::byte> bytes) {
    ASSERT_EQ(send(peers_[stream].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  void SayChunk(std::size_t stream, const Chunk& chunk, std::size_t payload) {
    std::array<std::byte, kChunkBytes> header;
    EncodeChunk(chunk, header);
    Say(stream, header);
    if (payload > 0) Say(stream, std::vector<std::byte>(payload));
  }

  void ExpectFailure(StatusCode code, const char* text) {
    Outcome outcome = Outcome::kAgain;
    for (int i = 0; i < 1'000'000 && outcome == Outcome::kAgain; ++i) {
      clock_.Advance(10 * kMicrosecond);
      outcome = receiver_->Test(request_, {});
    }
    EXPECT_EQ(outcome, Outcome::kFailed);
    EXPECT_EQ(receiver_->failure().code(), code);
    EXPECT_NE(receiver_->failure().message().find(text), std::string::npos) << receiver_->failure().message();
    for (const char* end : {"right/2 (127.0.0.1:", "), receiving from bad/1 (127.0.0.1:"}) {
      EXPECT_NE(receiver_->failure().message().find(end), std::string::npos) << receiver_->failure().message();
    }
  }

  ManualClock clock_;
  std::vector<std::byte> room_ = std::vector<std::byte>(1000);
  std::vector<Socket> peers_;
  std::unique_ptr<Receiver> receiver_;
  Request* request_ = nullptr;
};

TEST_F(TcpHostile, GarbageInsteadOfAChunk) {
  Connect();
  Say(1, std::vector<std::byte>(kChunkBytes, std::byte{0xaa}));
  ExpectFailure(StatusCode::kProtocol, "no chunk of a message");
}

TEST_F(TcpHostile, GarbageOnTheControlConnection) {
  Connect();
  Say(0, std::vector<std::byte>(kControlBytes, std::byte{0xaa}));
  ExpectFailure(StatusCode::kProtocol, "control connection is no frame");
}

TEST_F(TcpHostile, AReceivePostedByTheSendingSide) {
  Connect();
  std::array<std::byte, kControlBytesMax> bytes;
  Control control;
  control.count = 1;
  const std::size_t size = EncodeControl(control, bytes);
  Say(0, std::span(bytes).first(size));
  ExpectFailure(StatusCode::kProtocol, "control connection is no frame");
}

TEST_F(TcpHostile, AMessageOutOfTurn) {
  Connect();
  SayChunk(1, {0, 5, 10, 0, 10}, 10);
  ExpectFailure(StatusCode::kProtocol, "do not begin in order");
}

TEST_F(TcpHostile, AMessageThatBeginsOnTheWrongStream) {
  Connect();
  SayChunk(1, {0, 0, 10, 0, 20}, 10);
  SayChunk(2, {0, 1, 10, 0, 10}, 10);
  ExpectFailure(StatusCode::kProtocol, "do not begin in order");
}

TEST_F(TcpHostile, AChunkOfAMessageThatIsOver) {
  Connect();
  SayChunk(1, {0, 0, 10, 0, 20}, 10);
  SayChunk(2, {0, 0xffffffff, 10, 10, 20}, 10);
  ExpectFailure(StatusCode::kProtocol, "not under way");
}

TEST_F(TcpHostile, ChunksThatDifferAboutTheLength) {
  Connect();
  SayChunk(1, {0, 0, 10, 0, 30}, 10);
  SayChunk(2, {0, 0, 10, 10, 31}, 10);
  ExpectFailure(StatusCode::kProtocol, "differ about its length");
}

TEST_F(TcpHostile, MoreChunksThanTheMessageHas) {
  Connect();
  SayChunk(1, {0, 0, 20, 0, 30}, 20);
  SayChunk(2, {0, 0, 20, 10, 30}, 20);
  ExpectFailure(StatusCode::kProtocol, "more chunks of a message came than it has");
}

TEST_F(TcpHostile, AMessageLargerThanTheRoom) {
  Connect();
  SayChunk(1, {0, 0, 1001, 0, 1001}, 10);
  ExpectFailure(StatusCode::kInvalidArgument, "larger than the room");
}

TEST_F(TcpHostile, ATagThatNobodyAskedFor) {
  Connect(2);
  std::vector<std::byte> more(20);
  Request* second = nullptr;
  const std::vector<Slot> slots{{more.data(), 10, 1, {}}, {more.data() + 10, 10, 2, {}}};
  ASSERT_EQ(receiver_->Irecv(slots, &second), Outcome::kDone);
  SayChunk(1, {0, 0, 10, 0, 10}, 10);
  SayChunk(1, {3, 1, 10, 0, 10}, 10);
  Outcome outcome = Outcome::kAgain;
  for (int i = 0; i < 1'000'000 && outcome == Outcome::kAgain; ++i) outcome = receiver_->Test(second, {});
  EXPECT_EQ(outcome, Outcome::kFailed);
  EXPECT_NE(receiver_->failure().message().find("no open slot"), std::string::npos) << receiver_->failure().message();
  EXPECT_EQ(receiver_->Test(request_, {}), Outcome::kDone) << "the first one was complete before";
}

TEST_F(TcpHostile, AnEndOfTheControlConnectionAlone) {
  Connect();
  peers_[0] = Socket();
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(5 * kMillisecond);
    ASSERT_EQ(receiver_->Test(request_, {}), Outcome::kAgain);
  }
  SayChunk(1, {0, 0, 50, 0, 100}, 50);
  for (int i = 0; i < 1900; ++i) {
    clock_.Advance(5 * kMillisecond);
    ASSERT_EQ(receiver_->Test(request_, {}), Outcome::kAgain) << "what still comes is waited for";
  }
  clock_.Advance(kSecond);
  ExpectFailure(StatusCode::kUnavailable, "closed the control connection");
}

TEST_F(TcpHostile, AnEndWithinAMessage) {
  Connect();
  SayChunk(1, {0, 0, 100, 0, 100}, 50);
  peers_.clear();
  ExpectFailure(StatusCode::kUnavailable, "closed the channel within a message");
}

TEST_F(TcpHostile, AnEndBetweenTheChunksOfAMessage) {
  Connect();
  SayChunk(1, {0, 0, 50, 0, 100}, 50);
  peers_.clear();
  ExpectFailure(StatusCode::kUnavailable, "the peer closed the channel");
}

}  // namespace
}  // namespace weir::transport::tcp
