// Asking the kernel about real loopback connections.
#include "agents/host/sock_diag.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/agents/host/loopback.h"

namespace weir::agents {
namespace {

class SockDiagTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = SockDiag::Open();
    if (!opened) GTEST_SKIP() << opened.error().message();
    diag_.emplace(std::move(*opened));
  }

  std::vector<SocketQueue> Query(std::vector<SocketKey> keys) {
    auto queues = diag_->Query(keys);
    EXPECT_TRUE(queues) << queues.error().message();
    return queues ? *queues : std::vector<SocketQueue>(keys.size());
  }

  /// Writes until neither the sender nor the receiver, who reads nothing, takes any more.
  static std::size_t Fill(int fd) {
    const std::string block(65536, 'x');
    std::size_t total = 0;
    ssize_t wrote = 0;
    while ((wrote = send(fd, block.data(), block.size(), MSG_DONTWAIT)) > 0) total += static_cast<std::size_t>(wrote);
    return total;
  }

  std::optional<SockDiag> diag_;
};

TEST_F(SockDiagTest, IdleConnectionHasNothingOutstanding) {
  const Loopback connection;
  ASSERT_TRUE(connection.ok());
  const auto queues = Query({connection.Key()});
  EXPECT_TRUE(queues[0].found);
  EXPECT_EQ(queues[0].outstanding, 0u);
  EXPECT_EQ(SockDiag::Sum(queues).queued, 0u);
}

TEST_F(SockDiagTest, BytesThatThePeerDoesNotReadAreOutstanding) {
  const Loopback connection;
  ASSERT_TRUE(connection.ok());
  const std::size_t wrote = Fill(connection.client());
  const auto queues = Query({connection.Key()});
  EXPECT_GT(queues[0].outstanding, 3 * queues[0].segment);
  EXPECT_LE(queues[0].outstanding, wrote);
  EXPECT_LE(queues[0].unsent, queues[0].outstanding);
  EXPECT_EQ(SockDiag::Sum(queues).queued, queues[0].outstanding - 3 * queues[0].segment);
}

TEST_F(SockDiagTest, Ipv6ConnectionIsFound) {
  const Loopback connection(AF_INET6);
  if (!connection.ok()) GTEST_SKIP() << "no IPv6 on loopback";
  EXPECT_TRUE(Query({connection.Key()})[0].found);
}

TEST_F(SockDiagTest, MappedIpv4ConnectionIsFound) {
  const Loopback connection(AF_INET6, true);
  if (!connection.ok()) GTEST_SKIP() << "no IPv6 sockets";
  EXPECT_TRUE(Query({connection.Key()})[0].found);
}

TEST_F(SockDiagTest, UnknownConnectionIsNotFoundAndCountsNothing) {
  SocketKey key;
  {
    const Loopback connection;
    key = connection.Key();
    key.peer_port = 1;
  }
  const auto queues = Query({key});
  EXPECT_FALSE(queues[0].found);
  EXPECT_EQ(SockDiag::Sum(queues).queued, 0u);
}

TEST_F(SockDiagTest, AnswersKeepTheOrderOverSeveralBatches) {
  const Loopback idle;
  const Loopback full;
  Fill(full.client());
  SocketKey unknown = idle.Key();
  unknown.peer_port = 1;
  std::vector<SocketKey> keys;
  for (std::size_t i = 0; i < SockDiag::kBatch; ++i) {
    keys.push_back(idle.Key());
    keys.push_back(full.Key());
    keys.push_back(unknown);
  }
  const auto queues = Query(keys);
  for (std::size_t i = 0; i < keys.size(); i += 3) {
    EXPECT_EQ(queues[i].outstanding, 0u);
    EXPECT_GT(queues[i + 1].outstanding, 0u);
    EXPECT_FALSE(queues[i + 2].found);
  }
}

TEST_F(SockDiagTest, SocketThatWeHoldSaysTheSame) {
  const Loopback connection;
  ASSERT_TRUE(connection.ok());
  Fill(connection.client());
  const SocketQueue asked = Query({connection.Key()})[0];
  const SocketQueue held = QueueOf(connection.client());
  EXPECT_TRUE(held.found);
  EXPECT_EQ(held.outstanding, asked.outstanding);
  EXPECT_EQ(held.unsent, asked.unsent);
  EXPECT_EQ(held.segment, asked.segment);
  EXPECT_EQ(held.min_rtt, asked.min_rtt);
  EXPECT_FALSE(QueueOf(-1).found);
}

TEST_F(SockDiagTest, NoKeysNoQuestion) {
  EXPECT_TRUE(Query({}).empty());
}

}  // namespace
}  // namespace weir::agents
