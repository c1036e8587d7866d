// Who may connect: the one that has the handle, and nobody else; a refusal names both sides.
#include <sys/socket.h>

#include "tests/transport/rdma/vm_ends.h"

namespace weir::transport::rdma {
namespace {

class RdmaHandshake : public testing::Test {
 protected:
  Place Where() const { return DecodeHandle(listener_->handle()).value(); }

  /// A connection of our own to the listener.
  tcp::Socket Raw() {
    const Place place = Where();
    return std::move(*tcp::ConnectTo(tcp::SocketAddress::Of(place.address, place.port, 0), nullptr));
  }
  template <std::size_t kSize>
  static void Say(const tcp::Socket& socket, const std::array<std::byte, kSize>& bytes) {
    ASSERT_TRUE(Within(5 * kSecond, [&] { return tcp::ConnectError(socket) == 0; }));
    ASSERT_EQ(send(socket.get(), bytes.data(), kSize, MSG_NOSIGNAL), static_cast<ssize_t>(kSize));
  }
  Hello Right() const {
    Hello hello;
    hello.listener = Where().nonce;
    hello.mtu = 3;
    hello.identity = "stranger/3";
    return hello;
  }
  /// The answer to what was said.
  Welcome Answer(const tcp::Socket& socket) {
    std::array<std::byte, kWelcomeBytes> bytes{};
    std::size_t got = 0;
    EXPECT_TRUE(Within(5 * kSecond, [&] {
      EXPECT_EQ(listener_->Accept().value(), nullptr);
      const ssize_t read = recv(socket.get(), bytes.data() + got, kWelcomeBytes - got, MSG_DONTWAIT);
      if (read > 0) got += static_cast<std::size_t>(read);
      return got == kWelcomeBytes;
    }));
    return DecodeWelcome(bytes).value();
  }
  Status Outcome(Connector* connector) {
    Status status = Status(StatusCode::kInternal, "neither connected nor refused");
    Within(5 * kSecond, [&] {
      static_cast<void>(listener_->Accept());
      const auto sender = connector->Poll();
      if (!sender) status = sender.error();
      if (sender && *sender != nullptr) status = Status::Ok();
      return !sender || *sender != nullptr;
    });
    return status;
  }

  VmEnd left_{"=rxe0", "left/1"};
  VmEnd right_{"=rxe1", "right/2"};
  std::unique_ptr<RdmaListener> listener_ = right_.Listen();
};

TEST_F(RdmaHandshake, AStrangerIsTurnedAwayAndTheRightOneConnects) {
  const tcp::Socket stranger = Raw();
  std::array<std::byte, 16> bytes{};
  Say(stranger, bytes);
  EXPECT_TRUE(Within(5 * kSecond, [&] {
    EXPECT_EQ(listener_->Accept().value(), nullptr);
    return listener_->refused() == 1;
  }));
  EXPECT_NE(listener_->last_refusal().find("no greeting"), std::string::npos) << listener_->last_refusal();
  EXPECT_TRUE(Outcome(left_.Connect(listener_->handle()).get()).ok());
}

TEST_F(RdmaHandshake, AnotherVersionIsToldOurs) {
  const tcp::Socket other = Raw();
  auto bytes = EncodeHello(Right());
  bytes[4] = std::byte{9};
  Say(other, bytes);
  EXPECT_EQ(Answer(other).verdict, Verdict::kOtherVersion);
  EXPECT_NE(listener_->last_refusal().find("version 9, we speak 1"), std::string::npos);
}

TEST_F(RdmaHandshake, AHandleOfSomebodyElseIsRefusedAndBothAreNamed) {
  Place place = Where();
  place.nonce[0] ^= std::byte{1};
  const Status status = Outcome(left_.Connect(EncodeHandle(place)).get());
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("left/1"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("right/2"), std::string::npos) << status.message();
  EXPECT_NE(listener_->last_refusal().find("left/1 does not have our handle"), std::string::npos);
}

TEST_F(RdmaHandshake, WhatIsOnAnotherKindOfLinkIsTold) {
  const tcp::Socket other = Raw();
  Hello hello = Right();
  hello.ethernet = false;
  Say(other, EncodeHello(hello));
  EXPECT_EQ(Answer(other).verdict, Verdict::kOtherLink);
}

TEST_F(RdmaHandshake, ASecondChannelIsRefusedAndOneThatDiesHalfWayKeepsNobodyOut) {
  auto first = std::make_unique<tcp::Socket>(Raw());
  Say(*first, EncodeHello(Right()));
  EXPECT_EQ(Answer(*first).verdict, Verdict::kWelcome);
  const tcp::Socket second = Raw();
  Say(second, EncodeHello(Right()));
  EXPECT_EQ(Answer(second).verdict, Verdict::kTaken);
  EXPECT_NE(listener_->last_refusal().find("comes after stranger/3"), std::string::npos) << listener_->last_refusal();
  first.reset();
  EXPECT_TRUE(Within(5 * kSecond, [&] {
    EXPECT_EQ(listener_->Accept().value(), nullptr);
    return listener_->last_refusal().find("gave up on stranger/3") != std::string::npos;
  }));
  EXPECT_TRUE(Outcome(left_.Connect(listener_->handle()).get()).ok());
  EXPECT_LE(right_.port->registrations().ranges(), 2u) << "what the dead one needed is given back";
}

TEST_F(RdmaHandshake, AnEndThatCannotBeIsGivenUpOn) {
  const tcp::Socket other = Raw();
  Say(other, EncodeHello(Right()));
  EXPECT_EQ(Answer(other).verdict, Verdict::kWelcome);
  End end;
  end.queue_pairs[0] = 1u << 24;
  Say(other, EncodeAttach(end));
  EXPECT_TRUE(Within(5 * kSecond, [&] {
    EXPECT_EQ(listener_->Accept().value(), nullptr);
    return listener_->last_refusal().find("queue pair in a greeting") != std::string::npos;
  })) << listener_->last_refusal();
}

TEST_F(RdmaHandshake, NobodyThereIsSaidWithBothNames) {
  const Handle handle = listener_->handle();
  listener_.reset();
  listener_ = right_.Listen();
  const Status status = Outcome(left_.Connect(handle).get());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("left/1, connecting to right/2"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace weir::transport::rdma
