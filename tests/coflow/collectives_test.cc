#include "coflow/collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace weir {
namespace {

constexpr Bytes kMegabyte = 1'000'000;

std::vector<HostId> Hosts(std::size_t count, std::uint64_t first = 1) {
  std::vector<HostId> hosts;
  for (std::size_t i = 0; i < count; ++i) hosts.emplace_back(first + i);
  return hosts;
}

std::map<HostId, Bytes> SentBy(const std::vector<Flow>& flows) {
  std::map<HostId, Bytes> sent;
  for (const Flow& flow : flows) sent[flow.source] += flow.bytes.value();
  return sent;
}

Bytes Total(const std::vector<Flow>& flows) {
  return std::accumulate(flows.begin(), flows.end(), Bytes{0},
                         [](Bytes sum, const Flow& flow) { return sum + flow.bytes.value(); });
}

double Milliseconds(const std::vector<Flow>& flows, double gigabits) {
  return TransferNanoseconds(static_cast<double>(BusiestPortBytes(flows)), BitsPerSecond(gigabits * 1e9)) * 1e-6;
}

struct RingCase {
  std::size_t ranks;
  Bytes megabytes;
  double gigabits;
  Bytes sent_megabytes;
  double milliseconds;
};

class RingNumbers : public testing::TestWithParam<RingCase> {};

TEST_P(RingNumbers, EachRankSendsWhatTheFormulaSays) {
  const RingCase& c = GetParam();
  const auto flows = RingAllReduce(Hosts(c.ranks), c.megabytes * kMegabyte).value();
  ASSERT_EQ(flows.size(), c.ranks);
  for (const auto& [host, bytes] : SentBy(flows)) EXPECT_EQ(bytes, c.sent_megabytes * kMegabyte);
  EXPECT_NEAR(Milliseconds(flows, c.gigabits), c.milliseconds, 1e-9);
}

TEST_P(RingNumbers, ReduceScatterAndAllGatherAreHalfOfItEach) {
  const RingCase& c = GetParam();
  for (const auto& collective : {RingReduceScatter, RingAllGather}) {
    const auto flows = collective(Hosts(c.ranks), c.megabytes * kMegabyte).value();
    EXPECT_EQ(BusiestPortBytes(flows), c.sent_megabytes * kMegabyte / 2);
    EXPECT_NEAR(Milliseconds(flows, c.gigabits), c.milliseconds / 2, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(ClosedForms, RingNumbers,
                         testing::Values(RingCase{4, 100, 100, 150, 12.0}, RingCase{16, 528, 50, 990, 158.4},
                                         RingCase{8, 676, 50, 1183, 189.28}));

TEST(Ring, BytesThatDoNotDivideAreConserved) {
  // 10 bytes over 4 ranks: pieces 3, 3, 2, 2.
  const auto reduce_scatter = RingReduceScatter(Hosts(4), 10).value();
  const auto all_gather = RingAllGather(Hosts(4), 10).value();
  EXPECT_EQ(SentBy(reduce_scatter),
            (std::map<HostId, Bytes>{{HostId(1), 7}, {HostId(2), 7}, {HostId(3), 8}, {HostId(4), 8}}));
  EXPECT_EQ(SentBy(all_gather),
            (std::map<HostId, Bytes>{{HostId(1), 7}, {HostId(2), 8}, {HostId(3), 8}, {HostId(4), 7}}));
  const auto both = SentBy(RingAllReduce(Hosts(4), 10).value());
  EXPECT_EQ(both, (std::map<HostId, Bytes>{{HostId(1), 14}, {HostId(2), 15}, {HostId(3), 16}, {HostId(4), 15}}));
  for (const std::size_t ranks : {2u, 3u, 7u, 64u}) {
    for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{63}, Bytes{1001}}) {
      EXPECT_EQ(Total(RingAllReduce(Hosts(ranks), bytes).value()), 2 * (ranks - 1) * bytes) << ranks << " " << bytes;
    }
  }
}

TEST(Ring, EachRankSendsToItsSuccessorOnly) {
  const auto flows = RingAllReduce(Hosts(5), 1000).value();
  for (const Flow& flow : flows) {
    EXPECT_EQ(flow.destination.value, flow.source.value % 5 + 1);
    EXPECT_EQ(flow.sent, 0u);
  }
}

TEST(Ring, RanksOfOneHostUseTheNetworkOnceBetweenHosts) {
  // Two hosts of two ranks each, in order: only two of the four hops leave a host.
  const std::vector<HostId> ranks = {HostId(1), HostId(1), HostId(2), HostId(2)};
  const auto flows = RingAllReduce(ranks, 100).value();
  EXPECT_EQ(flows, (std::vector<Flow>{{HostId(1), HostId(2), 150, 0}, {HostId(2), HostId(1), 150, 0}}));
  EXPECT_TRUE(RingAllReduce(std::vector<HostId>{HostId(1), HostId(1)}, 100).value().empty());
}

TEST(Tree, EveryEdgeCarriesTheBufferBothWays) {
  const auto flows = TreeAllReduce(Hosts(7), 100).value();
  EXPECT_EQ(flows.size(), 12u);
  EXPECT_EQ(Total(flows), 2u * 6 * 100);
  const auto sent = SentBy(flows);
  EXPECT_EQ(sent.at(HostId(1)), 200u);  // The root: to two children.
  EXPECT_EQ(sent.at(HostId(2)), 300u);  // To its parent and two children.
  EXPECT_EQ(sent.at(HostId(7)), 100u);  // A leaf.
}

TEST(AllToAll, EachRankSendsAllButItsOwnPiece) {
  const auto flows = AllToAll(Hosts(8), 64 * kMegabyte).value();
  EXPECT_EQ(flows.size(), 56u);
  for (const auto& [host, bytes] : SentBy(flows)) EXPECT_EQ(bytes, 56 * kMegabyte);
}

TEST(Broadcast, ChainBeginsAtTheRootAndEndsBeforeIt) {
  const auto flows = Broadcast(Hosts(4), 2, 100).value();
  EXPECT_EQ(flows,
            (std::vector<Flow>{
                {HostId(1), HostId(2), 100, 0}, {HostId(3), HostId(4), 100, 0}, {HostId(4), HostId(1), 100, 0}}));
}

TEST(Broadcast, RootBeyondTheRanksIsRefused) {
  EXPECT_EQ(Broadcast(Hosts(4), 4, 100).error().ToString(), "invalid argument: root = 4; allowed: 0 to 3");
}

TEST(ParameterServers, PushAndPullMirrorEachOther) {
  const std::vector<ParameterServer> servers = {{HostId(9), 0.25}, {HostId(1), 0.75}};
  const auto push = ParameterPush(Hosts(2), servers, 101).value();
  EXPECT_EQ(push, (std::vector<Flow>{
                      {HostId(1), HostId(9), 25, 0}, {HostId(2), HostId(1), 76, 0}, {HostId(2), HostId(9), 25, 0}}));
  const auto pull = ParameterPull(Hosts(2), servers, 101).value();
  EXPECT_EQ(pull, (std::vector<Flow>{
                      {HostId(1), HostId(2), 76, 0}, {HostId(9), HostId(1), 25, 0}, {HostId(9), HostId(2), 25, 0}}));
}

TEST(ParameterServers, PartsOfAWorkerAddUpToTheBuffer) {
  std::vector<ParameterServer> servers;
  for (std::uint64_t i = 0; i < 7; ++i) servers.push_back({HostId(100 + i), 1.0 / 7});
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{6}, Bytes{1'000'003}, kMaxCollectiveBytes}) {
    EXPECT_EQ(Total(ParameterPush(Hosts(3), servers, bytes).value()), 3 * bytes);
  }
}

class BalancedNumbers : public testing::TestWithParam<std::pair<std::size_t, double>> {};

TEST_P(BalancedNumbers, AllMachinesSendWhatTheFormulaSays) {
  const auto [spare_count, buffers] = GetParam();
  const auto workers = Hosts(8);
  const auto spare = Hosts(spare_count, 100);
  const auto servers = BalancedServers(workers, spare).value();
  const Bytes bytes = 1'000'000'000;
  auto flows = ParameterPush(workers, servers, bytes).value();
  const auto pull = ParameterPull(workers, servers, bytes).value();
  flows.insert(flows.end(), pull.begin(), pull.end());
  const auto sent = SentBy(flows);
  EXPECT_EQ(sent.size(), 8 + spare_count);
  for (const auto& [host, each] : sent) {
    EXPECT_NEAR(static_cast<double>(each) / static_cast<double>(bytes), buffers, 1e-6) << host.value;
  }
}

INSTANTIATE_TEST_SUITE_P(ClosedForms, BalancedNumbers,
                         testing::Values(std::pair{std::size_t{0}, 1.75}, std::pair{std::size_t{4}, 14.0 / 11},
                                         std::pair{std::size_t{8}, 1.0}));

TEST(BalancedServers, MoreSpareHostsThanWorkersTakeAll) {
  const auto servers = BalancedServers(Hosts(2), Hosts(4, 100)).value();
  ASSERT_EQ(servers.size(), 4u);
  for (const ParameterServer& server : servers) EXPECT_DOUBLE_EQ(server.share, 0.25);
}

TEST(BalancedServers, MissingHostsAreRefused) {
  EXPECT_EQ(BalancedServers(Hosts(1), {}).error().message(), "1 workers; at least 2 are needed");
  EXPECT_EQ(BalancedServers(Hosts(2, 0), {}).error().message(), "worker 0 has no host");
  EXPECT_EQ(BalancedServers(Hosts(2), Hosts(1, 0)).error().message(), "spare host 0 has no host");
}

TEST(ParameterServers, WhatCannotBeServedIsRefused) {
  const std::vector<ParameterServer> one = {{HostId(9), 1}};
  const auto complaint = [](const Result<std::vector<Flow>>& result) { return result.error().ToString(); };
  EXPECT_EQ(complaint(ParameterPush({}, one, 1)), "invalid argument: no worker is named");
  EXPECT_EQ(complaint(ParameterPush(Hosts(1), {}, 1)), "invalid argument: no parameter server is named");
  EXPECT_EQ(complaint(ParameterPush(Hosts(1, 0), one, 1)), "invalid argument: worker 0 has no host");
  const std::vector<ParameterServer> nowhere = {{HostId(), 1}};
  EXPECT_EQ(complaint(ParameterPull(Hosts(1), nowhere, 1)), "invalid argument: parameter server 0 has no host");
  const std::vector<ParameterServer> negative = {{HostId(1), 2}, {HostId(2), -1}};
  EXPECT_EQ(complaint(ParameterPull(Hosts(1), negative, 1)),
            "invalid argument: parameter server 1: share = -1; allowed: 0 to 1");
  const std::vector<ParameterServer> half = {{HostId(1), 0.5}};
  EXPECT_EQ(complaint(ParameterPull(Hosts(1), half, 1)),
            "invalid argument: the servers' shares add up to 0.5 instead of 1");
  const std::vector<ParameterServer> strange = {{HostId(1), std::nan("")}};
  EXPECT_FALSE(ParameterPull(Hosts(1), strange, 1));
  EXPECT_EQ(ParameterPush(Hosts(1), one, kMaxCollectiveBytes + 1).error().code(), StatusCode::kResourceExhausted);
  const std::vector<ParameterServer> many(kMaxRanks, {HostId(1), 1.0 / kMaxRanks});
  EXPECT_EQ(ParameterPush(Hosts(2), many, 1).error().code(), StatusCode::kResourceExhausted);
}

TEST(Pipeline, OneFlowBetweenTwoHostsAndNoneWithinOne) {
  EXPECT_EQ(PipelineSend(HostId(1), HostId(2), 5).value(), (std::vector<Flow>{{HostId(1), HostId(2), 5, 0}}));
  EXPECT_TRUE(PipelineSend(HostId(1), HostId(1), 5).value().empty());
  EXPECT_EQ(PipelineSend(HostId(), HostId(1), 5).error().message(), "a pipeline stage has no host");
  EXPECT_EQ(PipelineSend(HostId(1), HostId(2), kMaxCollectiveBytes + 1).error().code(), StatusCode::kResourceExhausted);
}

TEST(Collectives, EveryRankNeedsAHostAndACompanion) {
  const auto all = {RingAllReduce, RingReduceScatter, RingAllGather, TreeAllReduce, AllToAll};
  for (const auto& collective : all) {
    EXPECT_EQ(collective(Hosts(1), 8).error().ToString(),
              "invalid argument: a collective of 1 ranks; at least 2 are needed");
    EXPECT_EQ(collective(Hosts(2, 0), 8).error().ToString(), "invalid argument: rank 0 has no host");
    EXPECT_EQ(collective(Hosts(2), kMaxCollectiveBytes + 1).error().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(collective(Hosts(kMaxRanks + 1), 8).error().code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(Broadcast({}, 0, 8).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(AllToAll(Hosts(kMaxAllToAllRanks + 1), 8).error().ToString(),
            "limit reached: a collective of 1025 ranks; at most 1024 are allowed");
}

TEST(Collectives, LargestSizesAreDone) {
  EXPECT_EQ(RingAllReduce(Hosts(kMaxRanks), kMaxCollectiveBytes).value().size(), kMaxRanks);
  EXPECT_EQ(AllToAll(Hosts(kMaxAllToAllRanks), kMaxCollectiveBytes).value().size(),
            kMaxAllToAllRanks * (kMaxAllToAllRanks - 1));
}

TEST(BusiestPort, UnknownSizesCountAsWhatWasSent) {
  const std::vector<Flow> flows = {{HostId(1), HostId(2), std::nullopt, 40}, {HostId(3), HostId(2), 30, 10}};
  EXPECT_EQ(BusiestPortBytes(flows), 70u);
  EXPECT_EQ(BusiestPortBytes({}), 0u);
}

}  // namespace
}  // namespace weir
