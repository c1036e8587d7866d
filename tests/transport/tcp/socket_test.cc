#include "transport/tcp/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <memory>
#include <thread>

#include "transport/tcp/tcp_transport.h"

namespace weir::transport::tcp {
namespace {

std::string CongestionControl(int fd) {
  std::array<char, 16> name{};
  socklen_t size = name.size();
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return "?";
  return name.data();
}

/// What a socket has that nobody told anything.
std::string SystemsChoice() {
  return CongestionControl(Socket(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)).get());
}

TEST(ConnectTo, WithinTheHostTheCongestionControlThatSpacesNothingIsUsed) {
  std::uint16_t port = 0;
  const IpAddress loopback = *IpAddress::Parse("127.0.0.1");
  const auto listener = ListenOn(loopback, 0, &port);
  ASSERT_TRUE(listener.has_value());
  const SocketAddress peer = SocketAddress::Of(loopback, port, 0);
  const auto within = ConnectTo(peer, nullptr, PathKind::kWithinHost);
  const auto beyond = ConnectTo(peer, nullptr, PathKind::kNetwork);
  ASSERT_TRUE(within.has_value() && beyond.has_value());
  EXPECT_EQ(CongestionControl(within->get()), "reno");
  EXPECT_EQ(CongestionControl(beyond->get()), SystemsChoice());
}

TEST(ConnectTo, AChannelWithinTheHostUsesItForDataOnly) {
  TcpOptions options;
  options.interfaces = "=lo";
  options.family = "AF_INET";
  options.streams = 2;
  const auto transport = MakeTcpTransport(options);
  ASSERT_TRUE(transport.has_value());
  const auto listener = (*transport)->Listen(0, 1);
  ASSERT_TRUE(listener.has_value());
  const auto connector = (*transport)->Connect(0, (*listener)->handle(), nullptr);
  ASSERT_TRUE(connector.has_value());
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  while (sender == nullptr || receiver == nullptr) {
    if (sender == nullptr) sender = std::move((*connector)->Poll().value());
    if (receiver == nullptr) receiver = std::move((*listener)->Accept().value());
    std::this_thread::yield();
  }
  std::array<int, 3> fds{};
  ASSERT_EQ(sender->Descriptors(fds), fds.size());
  EXPECT_EQ(CongestionControl(fds[0]), "reno");
  EXPECT_EQ(CongestionControl(fds[1]), "reno");
  EXPECT_EQ(CongestionControl(fds[2]), SystemsChoice());
}

}  // namespace
}  // namespace weir::transport::tcp
