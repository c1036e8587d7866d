#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coflow/coflow.h"
#include "coflow/ids.h"
#include "coflow/status.h"
#include "coflow/units.h"

/// From an operation of a communicator to the flows it puts on the network: who sends how many bytes to whom, over all
/// rounds of the algorithm. Sizes are bytes and exact: a buffer of S bytes is cut into N pieces that differ by at most
/// one byte, the longer ones first, as the libraries do.
///
/// `ranks[i]` is the host of rank i. Hosts may repeat; what two ranks of one host exchange makes no flow, and all flows
/// of one pair of hosts are one Flow. Results are in order of source, then destination.
///
/// Errors, all kInvalidArgument unless said otherwise: fewer than 2 ranks, a rank or root without a host; more than
/// kMaxRanks ranks or kMaxCollectiveBytes (kResourceExhausted). Pure functions: any thread.
///
/// Formulas: ring and tree by counting what each rank passes on; the parameter server's split is the one that loads all
/// machines alike (BytePS, OSDI 2020). Expected numbers stand in tests/coflow/collectives_test.cc.
namespace weir {

inline constexpr std::size_t kMaxRanks = 65'536;
inline constexpr std::size_t kMaxAllToAllRanks = 1'024;  ///< The flows are the square of it.
inline constexpr Bytes kMaxCollectiveBytes = Bytes{1} << 50;

/// Reduce-scatter, then all-gather, around the ring of ranks. Rank r passes on every piece twice but for pieces r and
/// r + 1, which it passes once: 2 (N - 1) / N * S bytes each, all to its successor. O(N).
Result<std::vector<Flow>> RingAllReduce(std::span<const HostId> ranks, Bytes bytes);
/// Rank r ends with piece r of S reduced bytes: (N - 1) / N * S each, to its successor. O(N).
Result<std::vector<Flow>> RingReduceScatter(std::span<const HostId> ranks, Bytes bytes);
/// Rank r begins with piece r of the S bytes that all end with: (N - 1) / N * S each, to its successor. O(N).
Result<std::vector<Flow>> RingAllGather(std::span<const HostId> ranks, Bytes bytes);
/// One binary tree (not a pair of complementary ones): rank i's parent is (i - 1) / 2. S bytes up every edge, then S
/// down: 2 (N - 1) S in all; an inner rank sends up to 3 S. O(N).
Result<std::vector<Flow>> TreeAllReduce(std::span<const HostId> ranks, Bytes bytes);
/// Each rank's buffer of S bytes holds one piece for every rank, itself included: (N - 1) / N * S sent by each. O(N^2),
/// at most kMaxAllToAllRanks ranks.
Result<std::vector<Flow>> AllToAll(std::span<const HostId> ranks, Bytes bytes);
/// A chain: each rank passes all S bytes to its successor, beginning at `root` (an index into `ranks`). O(N).
Result<std::vector<Flow>> Broadcast(std::span<const HostId> ranks, std::size_t root, Bytes bytes);

/// A parameter server and the share of every tensor that it sums; shares are >= 0 and their sum is 1.
struct ParameterServer {
  HostId host;
  double share = 0;
};

/// Every worker sends each server its share of S bytes. Shares are rounded so that a worker's parts add up to S. A
/// server on the worker's own host gets its part without a flow. O(workers x servers), at most kMaxRanks flows.
/// Error kInvalidArgument also for no worker, no server, or shares that do not add up to 1 (within 1e-9).
Result<std::vector<Flow>> ParameterPush(std::span<const HostId> workers, std::span<const ParameterServer> servers,
                                        Bytes bytes);
/// The same the other way.
Result<std::vector<Flow>> ParameterPull(std::span<const HostId> workers, std::span<const ParameterServer> servers,
                                        Bytes bytes);
/// Servers for n workers and k spare hosts without one, such that one push and pull loads all machines alike:
/// a worker's host serves (n - k) / (n^2 + k n - 2 k), a spare one 2 (n - 1) / (n^2 + k n - 2 k), and each then sends
/// 2 n (n - 1) / (n^2 + k n - 2 k) * S. With k > n the spare ones take all.
/// Error kInvalidArgument for fewer than 2 workers.
Result<std::vector<ParameterServer>> BalancedServers(std::span<const HostId> workers, std::span<const HostId> spare);

/// The activations or gradients of one micro-batch, from one stage to a neighbour. No flow within one host.
Result<std::vector<Flow>> PipelineSend(HostId from, HostId to, Bytes bytes);

/// The most bytes that one host must send or receive; over its NIC's rate that is the least time the flows can take.
/// Flows of unknown size count as what they have sent.
Bytes BusiestPortBytes(std::span<const Flow> flows);

}  // namespace weir
