#include "coflow/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

namespace weir {
namespace {

/// Adds up bytes per pair of hosts; forgets what stays on one host.
class FlowTable {
 public:
  void Add(HostId from, HostId to, Bytes bytes) {
    if (from != to && bytes > 0) bytes_[{from, to}] += bytes;
  }
  std::vector<Flow> Take() const {
    std::vector<Flow> flows;
    flows.reserve(bytes_.size());
    for (const auto& [pair, bytes] : bytes_) flows.push_back({pair.first, pair.second, bytes, 0});
    return flows;
  }

 private:
  std::map<std::pair<HostId, HostId>, Bytes> bytes_;
};

/// Length of piece `index` of `count` pieces of `bytes`.
Bytes Piece(Bytes bytes, std::size_t count, std::size_t index) {
  return bytes / count + (index < bytes % count ? 1 : 0);
}

Status CheckHosts(std::span<const HostId> hosts, std::string_view what) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!hosts[i]) return {StatusCode::kInvalidArgument, fmt::format("{} {} has no host", what, i)};
  }
  return Status::Ok();
}

Status CheckBytes(Bytes bytes) {
  if (bytes <= kMaxCollectiveBytes) return Status::Ok();
  return {StatusCode::kResourceExhausted,
          fmt::format("a collective of {} bytes; at most {} are allowed", bytes, kMaxCollectiveBytes)};
}

Status CheckRanks(std::span<const HostId> ranks, std::size_t ranks_max, Bytes bytes) {
  if (ranks.size() < 2) {
    return {StatusCode::kInvalidArgument, fmt::format("a collective of {} ranks; at least 2 are needed", ranks.size())};
  }
  if (ranks.size() > ranks_max) {
    return {StatusCode::kResourceExhausted,
            fmt::format("a collective of {} ranks; at most {} are allowed", ranks.size(), ranks_max)};
  }
  if (Status status = CheckBytes(bytes); !status.ok()) return status;
  return CheckHosts(ranks, "rank");
}

/// `bytes_of(r)` bytes from every rank to its successor.
template <typename BytesOf>
std::vector<Flow> AroundTheRing(std::span<const HostId> ranks, BytesOf bytes_of) {
  FlowTable table;
  for (std::size_t r = 0; r < ranks.size(); ++r) table.Add(ranks[r], ranks[(r + 1) % ranks.size()], bytes_of(r));
  return table.Take();
}

/// Cuts `bytes` by the running sum of the shares, so that the parts add up to exactly `bytes`.
std::vector<Bytes> PartsByShare(std::span<const ParameterServer> servers, Bytes bytes) {
  std::vector<Bytes> parts;
  parts.reserve(servers.size());
  double sum = 0;
  Bytes cut = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    sum += servers[i].share;
    const Bytes end = i + 1 == servers.size()
                          ? bytes
                          : std::min(bytes, static_cast<Bytes>(std::llround(sum * static_cast<double>(bytes))));
    parts.push_back(end - std::min(end, cut));
    cut = std::max(cut, end);
  }
  return parts;
}

Status CheckServers(std::span<const HostId> workers, std::span<const ParameterServer> servers, Bytes bytes) {
  if (workers.empty()) return {StatusCode::kInvalidArgument, "no worker is named"};
  if (servers.empty()) return {StatusCode::kInvalidArgument, "no parameter server is named"};
  if (workers.size() > kMaxRanks / servers.size()) {
    return {StatusCode::kResourceExhausted, fmt::format("{} workers times {} parameter servers; at most {} flows",
                                                        workers.size(), servers.size(), kMaxRanks)};
  }
  double sum = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (!servers[i].host) return {StatusCode::kInvalidArgument, fmt::format("parameter server {} has no host", i)};
    if (!(servers[i].share >= 0)) {
      return {StatusCode::kInvalidArgument,
              fmt::format("parameter server {}: share = {}; allowed: 0 to 1", i, servers[i].share)};
    }
    sum += servers[i].share;
  }
  if (!(std::abs(sum - 1) <= 1e-9)) {
    return {StatusCode::kInvalidArgument, fmt::format("the servers' shares add up to {} instead of 1", sum)};
  }
  if (Status status = CheckBytes(bytes); !status.ok()) return status;
  return CheckHosts(workers, "worker");
}

Result<std::vector<Flow>> WithServers(std::span<const HostId> workers, std::span<const ParameterServer> servers,
                                      Bytes bytes, bool push) {
  if (Status status = CheckServers(workers, servers, bytes); !status.ok()) return tl::unexpected(status);
  const std::vector<Bytes> parts = PartsByShare(servers, bytes);
  FlowTable table;
  for (const HostId worker : workers) {
    for (std::size_t i = 0; i < servers.size(); ++i) {
      table.Add(push ? worker : servers[i].host, push ? servers[i].host : worker, parts[i]);
    }
  }
  return table.Take();
}

}  // namespace

Result<std::vector<Flow>> RingAllReduce(std::span<const HostId> ranks, Bytes bytes) {
  if (Status status = CheckRanks(ranks, kMaxRanks, bytes); !status.ok()) return tl::unexpected(status);
  const std::size_t n = ranks.size();
  return AroundTheRing(ranks,
                       [&](std::size_t r) { return 2 * bytes - Piece(bytes, n, r) - Piece(bytes, n, (r + 1) % n); });
}

Result<std::vector<Flow>> RingReduceScatter(std::span<const HostId> ranks, Bytes bytes) {
  if (Status status = CheckRanks(ranks, kMaxRanks, bytes); !status.ok()) return tl::unexpected(status);
  return AroundTheRing(ranks, [&](std::size_t r) { return bytes - Piece(bytes, ranks.size(), r); });
}

Result<std::vector<Flow>> RingAllGather(std::span<const HostId> ranks, Bytes bytes) {
  if (Status status = CheckRanks(ranks, kMaxRanks, bytes); !status.ok()) return tl::unexpected(status);
  const std::size_t n = ranks.size();
  return AroundTheRing(ranks, [&](std::size_t r) { return bytes - Piece(bytes, n, (r + 1) % n); });
}

Result<std::vector<Flow>> TreeAllReduce(std::span<const HostId> ranks, Bytes bytes) {
  if (Status status = CheckRanks(ranks, kMaxRanks, bytes); !status.ok()) return tl::unexpected(status);
  FlowTable table;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const HostId parent = ranks[(r - 1) / 2];
    table.Add(ranks[r], parent, bytes);
    table.Add(parent, ranks[r], bytes);
  }
  return table.Take();
}

Result<std::vector<Flow>> AllToAll(std::span<const HostId> ranks, Bytes bytes) {
  if (Status status = CheckRanks(ranks, kMaxAllToAllRanks, bytes); !status.ok()) return tl::unexpected(status);
  FlowTable table;
  for (const HostId from : ranks) {
    for (std::size_t to = 0; to < ranks.size(); ++to) table.Add(from, ranks[to], Piece(bytes, ranks.size(), to));
  }
  return table.Take();
}

Result<std::vector<Flow>> Broadcast(std::span<const HostId> ranks, std::size_t root, Bytes bytes) {
  if (Status status = CheckRanks(ranks, kMaxRanks, bytes); !status.ok()) return tl::unexpected(status);
  if (root >= ranks.size()) {
    return Error(StatusCode::kInvalidArgument, fmt::format("root = {}; allowed: 0 to {}", root, ranks.size() - 1));
  }
  FlowTable table;
  for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
    table.Add(ranks[(root + i) % ranks.size()], ranks[(root + i + 1) % ranks.size()], bytes);
  }
  return table.Take();
}

Result<std::vector<Flow>> ParameterPush(std::span<const HostId> workers, std::span<const ParameterServer> servers,
                                        Bytes bytes) {
  return WithServers(workers, servers, bytes, true);
}

Result<std::vector<Flow>> ParameterPull(std::span<const HostId> workers, std::span<const ParameterServer> servers,
                                        Bytes bytes) {
  return WithServers(workers, servers, bytes, false);
}

Result<std::vector<ParameterServer>> BalancedServers(std::span<const HostId> workers, std::span<const HostId> spare) {
  if (workers.size() < 2) {
    return Error(StatusCode::kInvalidArgument, fmt::format("{} workers; at least 2 are needed", workers.size()));
  }
  if (Status status = CheckHosts(workers, "worker"); !status.ok()) return tl::unexpected(status);
  if (Status status = CheckHosts(spare, "spare host"); !status.ok()) return tl::unexpected(status);
  const double n = static_cast<double>(workers.size());
  const double k = static_cast<double>(spare.size());
  const double whole = n * n + k * n - 2 * k;
  const bool spare_take_all = k >= n;
  std::vector<ParameterServer> servers;
  for (const HostId host : workers) {
    if (!spare_take_all) servers.push_back({host, (n - k) / whole});
  }
  for (const HostId host : spare) servers.push_back({host, spare_take_all ? 1 / k : 2 * (n - 1) / whole});
  return servers;
}

Result<std::vector<Flow>> PipelineSend(HostId from, HostId to, Bytes bytes) {
  if (!from || !to) return Error(StatusCode::kInvalidArgument, "a pipeline stage has no host");
  if (Status status = CheckBytes(bytes); !status.ok()) return tl::unexpected(status);
  FlowTable table;
  table.Add(from, to, bytes);
  return table.Take();
}

Bytes BusiestPortBytes(std::span<const Flow> flows) {
  std::unordered_map<HostId, Bytes> out;
  std::unordered_map<HostId, Bytes> in;
  Bytes most = 0;
  for (const Flow& flow : flows) {
    const Bytes bytes = flow.bytes.value_or(flow.sent);
    most = std::max({most, out[flow.source] += bytes, in[flow.destination] += bytes});
  }
  return most;
}

}  // namespace weir
