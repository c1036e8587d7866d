// Who may connect: the one that has the handle, and nobody else; a refusal names both sides.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/fake/manual_clock.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/wire.h"

namespace weir::transport::tcp {
namespace {

class TcpHandshake : public testing::Test {
 protected:
  static TcpOptions Options(const char* identity) {
    TcpOptions options;
    options.interfaces = "=lo";
    options.family = "AF_INET";
    options.identity = identity;
    options.streams = 2;
    return options;
  }

  TcpHandshake() {
    transport_ = std::move(MakeTcpTransport(Options("left/1"), clock_).value());
    listener_ = Listen();
  }

  std::unique_ptr<TcpListener> Listen() {
    const auto lo = SelectInterfaces(*ListInterfaces(), "=lo", "AF_INET");
    return std::move(TcpListener::Start(Options("right/2"), lo->front(), 1, &clock_).value());
  }

  Place Where() const { return *DecodeHandle(listener_->handle()); }

  /// A connection of our own to the listener.
  Socket Raw() {
    const Place place = Where();
    auto socket = ConnectTo(SocketAddress::Of(place.address, place.port, 0), nullptr);
    return std::move(*socket);
  }

  static void Say(const Socket& socket, std::span<const std::byte> bytes) {
    ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  /// Polls the listener, which must accept nobody, until `done`.
  void AcceptNobodyUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 1'000'000 && !done(); ++i) {
      const auto receiver = listener_->Accept();
      ASSERT_TRUE(receiver.has_value());
      ASSERT_EQ(*receiver, nullptr);
    }
    ASSERT_TRUE(done());
  }

  /// What the connecting side is told in the end.
  Status Outcome(const Handle& handle, bool accept = true) {
    auto connector = transport_->Connect(0, handle, nullptr);
    if (!connector) return connector.error();
    for (int i = 0; i < 1'000'000; ++i) {
      if (accept) static_cast<void>(listener_->Accept());
      auto sender = (*connector)->Poll();
      if (!sender) return sender.error();
      if (*sender != nullptr) return Status::Ok();
    }
    return Status(StatusCode::kInternal, "neither connected nor refused");
  }

  void ExpectTheRightOneStillConnects() {
    auto connector = transport_->Connect(0, listener_->handle(), nullptr);
    ASSERT_TRUE(connector.has_value());
    std::unique_ptr<Sender> sender;
    std::unique_ptr<Receiver> receiver;
    for (int i = 0; i < 1'000'000 && (sender == nullptr || receiver == nullptr); ++i) {
      if (receiver == nullptr) receiver = std::move(listener_->Accept().value());
      if (sender == nullptr) sender = std::move((*connector)->Poll().value());
    }
    EXPECT_TRUE(sender != nullptr && receiver != nullptr);
  }

  ManualClock clock_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TcpListener> listener_;
};

TEST_F(TcpHandshake, AStrangerIsTurnedAwayAndTheRightOneConnects) {
  Socket stranger = Raw();
  const auto request = std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n"));
  Say(stranger, request);
  AcceptNobodyUntil([&] { return listener_->refused() == 1; });
  EXPECT_NE(listener_->last_refusal().find("right/2 refused 127.0.0.1:"), std::string::npos)
      << listener_->last_refusal();
  EXPECT_NE(listener_->last_refusal().find("no greeting of Weir"), std::string::npos) << listener_->last_refusal();
  ExpectTheRightOneStillConnects();
}

TEST_F(TcpHandshake, ASilentStrangerIsForgottenAfterItsTime) {
  Socket stranger = Raw();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(*listener_->Accept(), nullptr);
  clock_.Advance(TcpListener::kGreetWithin);
  AcceptNobodyUntil([&] { return listener_->refused() == 1; });
  EXPECT_NE(listener_->last_refusal().find("was silent after 0 of 76 bytes"), std::string::npos)
      << listener_->last_refusal();
}

TEST_F(TcpHandshake, OneThatClosesAmidItsGreetingIsForgotten) {
  {
    Socket stranger = Raw();
    const auto hello = EncodeHello({Where().nonce, {}, 0, 2, "x/1"});
    Say(stranger, std::span(hello).first(40));
  }
  AcceptNobodyUntil([&] { return listener_->refused() == 1; });
  EXPECT_NE(listener_->last_refusal().find("closed after 40 of 76 bytes"), std::string::npos)
      << listener_->last_refusal();
}

TEST_F(TcpHandshake, AnotherVersionIsToldOurs) {
  Socket stranger = Raw();
  auto hello = EncodeHello({Where().nonce, {}, 0, 2, "future/3"});
  hello[4] = std::byte{2};
  Say(stranger, hello);
  AcceptNobodyUntil([&] { return listener_->refused() == 1; });
  EXPECT_NE(listener_->last_refusal().find("speaks version 2, we speak 1"), std::string::npos)
      << listener_->last_refusal();
  std::array<std::byte, kWelcomeBytes> answer;
  ASSERT_EQ(recv(stranger.get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
  const auto welcome = DecodeWelcome(answer);
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->verdict, Verdict::kOtherVersion);
  EXPECT_EQ(welcome->identity, "right/2");
}

TEST_F(TcpHandshake, AHandleOfSomebodyElseIsRefusedAndBothAreNamed) {
  Place place = Where();
  place.nonce[3] ^= std::byte{1};
  place.identity = "meant/7";
  const Status status = Outcome(EncodeHandle(place));
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  for (const char* name : {"left/1", "meant/7", "right/2"}) {
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_NE(listener_->last_refusal().find("left/1 does not have our handle"), std::string::npos);
  ExpectTheRightOneStillConnects();
}

TEST_F(TcpHandshake, APeerWithAnotherNameThanTheHandleSaysIsNotTaken) {
  Place place = Where();
  place.identity = "meant/7";
  const Status status = Outcome(EncodeHandle(place));
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("connecting to meant/7"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("right/2 answers there"), std::string::npos) << status.message();
}

TEST_F(TcpHandshake, ASecondChannelIsRefused) {
  auto first = transport_->Connect(0, listener_->handle(), nullptr);
  ASSERT_TRUE(first.has_value());
  // Only its control connection has greeted so far: the rest of it follows later than the second comer.
  Socket early = Raw();
  Say(early, EncodeHello({Where().nonce, Nonce{std::byte{1}}, 0, 2, "early/1"}));
  AcceptNobodyUntil([&] {
    std::byte byte;
    return recv(early.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
  });
  const Status status = Outcome(listener_->handle());
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("connected to by another"), std::string::npos) << status.message();
  EXPECT_NE(listener_->last_refusal().find("left/1 comes after early/1"), std::string::npos)
      << listener_->last_refusal();
}

TEST_F(TcpHandshake, OneThatDiesHalfWayDoesNotKeepOthersOut) {
  {
    Socket dying = Raw();
    Say(dying, EncodeHello({Where().nonce, Nonce{std::byte{1}}, 0, 2, "dying/1"}));
    AcceptNobodyUntil([&] {
      std::byte byte;
      return recv(dying.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
    });
  }
  AcceptNobodyUntil([&] { return listener_->refused() == 1; });
  EXPECT_NE(listener_->last_refusal().find("gave up on dying/1"), std::string::npos) << listener_->last_refusal();
  ExpectTheRightOneStillConnects();
}

TEST_F(TcpHandshake, GreetingTwiceAsOneStreamIsRefused) {
  Socket one = Raw();
  Socket two = Raw();
  const auto hello = EncodeHello({Where().nonce, Nonce{std::byte{1}}, 1, 2, "twice/1"});
  Say(one, hello);
  Say(two, hello);
  AcceptNobodyUntil([&] { return listener_->refused() == 1; });
  EXPECT_NE(listener_->last_refusal().find("twice/1 greets twice"), std::string::npos) << listener_->last_refusal();
}

TEST_F(TcpHandshake, NoDescriptorLeftIsSaidAfterAWhileAndTheConnectionWaits) {
  auto connector = transport_->Connect(0, listener_->handle(), nullptr);
  ASSERT_TRUE(connector.has_value());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};  // With 0, poll() would refuse too.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto at_once = listener_->Accept();
  clock_.Advance(Acceptor::kShortMax - 1);
  const auto before = listener_->Accept();
  clock_.Advance(1);
  const auto after = listener_->Accept();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(at_once && before);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(after.error().message().find("cannot accept a connection at 127.0.0.1:"), std::string::npos)
      << after.error().message();
  EXPECT_NE(after.error().message().find("ulimit -n"), std::string::npos) << after.error().message();
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  for (int i = 0; i < 1'000'000 && (sender == nullptr || receiver == nullptr); ++i) {
    if (receiver == nullptr) receiver = std::move(listener_->Accept().value());
    if (sender == nullptr) sender = std::move((*connector)->Poll().value());
  }
  EXPECT_TRUE(sender != nullptr && receiver != nullptr);
}

TEST_F(TcpHandshake, NoDescriptorLeftIsNoErrorWhereNobodyWaits) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};  // With 0, poll() would refuse too.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto first = listener_->Accept();
  clock_.Advance(2 * Acceptor::kShortMax);
  const auto second = listener_->Accept();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(first && second);
}

TEST_F(TcpHandshake, NobodyThereIsSaidWithBothNames) {
  const Handle handle = listener_->handle();
  listener_.reset();
  const Status status = Outcome(handle, false);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("left/1, connecting to right/2 (127.0.0.1:"), std::string::npos) << status.message();
}

TEST_F(TcpHandshake, OneThatNeverAnswersIsGivenUpOn) {
  auto connector = transport_->Connect(0, listener_->handle(), nullptr);
  ASSERT_TRUE(connector.has_value());
  for (int i = 0; i < 100; ++i) ASSERT_EQ((*connector)->Poll().value(), nullptr);
  clock_.Advance(TcpOptions{}.connect_within);
  const auto sender = (*connector)->Poll();
  ASSERT_FALSE(sender.has_value());
  EXPECT_EQ(sender.error().code(), StatusCode::kUnavailable);
  EXPECT_NE(sender.error().message().find("no answer on 3 of 3 connections"), std::string::npos)
      << sender.error().message();
}

TEST(TcpOptionsCheck, ValuesOutOfRangeAreRefusedWithWhatIsAllowed) {
  const auto code = [](const std::function<void(TcpOptions*)>& change) {
    TcpOptions options;
    options.interfaces = "=lo";
    change(&options);
    const auto made = MakeTcpTransport(options);
    EXPECT_FALSE(made.has_value());
    EXPECT_NE(made.error().message().find("allowed: "), std::string::npos) << made.error().message();
    return made.error().code();
  };
  EXPECT_EQ(code([](TcpOptions* o) { o->streams = 0; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->streams = kMaxStreams + 1; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->requests = 0; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->stripe_bytes = 1; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->dead_after = 1; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->traffic_class = 256; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->identity = "two words"; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->identity = std::string(32, 'x'); }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](TcpOptions* o) { o->family = "AF_UNIX"; }), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::transport::tcp
