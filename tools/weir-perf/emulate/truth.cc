#include "tools/weir-perf/emulate/truth.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <tuple>

namespace weir::tools::emulate {
namespace {

constexpr unsigned kBits = 16;

std::uint64_t NumberAfter(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(key);
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at + key.size(), nullptr, 10);
}

}  // namespace

FunctionName NameOf(Collective collective) {
  switch (collective) {
    case Collective::kRingAllReduce:
      return {"AllReduce", "RING", 4, false};
    case Collective::kTreeAllReduce:
      return {"AllReduce", "TREE", 4, false};
    case Collective::kAllGather:
      return {"AllGather", "RING", 2, false};
    case Collective::kReduceScatter:
      return {"ReduceScatter", "RING", 3, false};
    case Collective::kBroadcast:
      return {"Broadcast", "RING", 0, false};
    case Collective::kAllToAll:
    case Collective::kSendReceive:
      break;
  }
  return {"SendRecv", "RING", 5, true};
}

void Truth::BeginComm(std::uint64_t comm_id) {
  comm_id_ = comm_id;
  sequences_.assign(kBits, 0);
}

CoflowName Truth::Begin(Collective collective) {
  sequences_.resize(kBits);
  CoflowName name{NameOf(collective), 0};
  name.sequence = sequences_[name.bit]++;
  coflows_.push_back({fmt::format(R"("comm":"{:#x}","function":"{}","sequence":{},"replay":0,"by":"profiler")",
                                  comm_id_, name.function, name.sequence),
                      0, 0});
  return name;
}

void Truth::End(std::uint64_t sends, Bytes bytes) {
  coflows_.back().sends = sends;
  coflows_.back().bytes = bytes;
}

Result<Truth::Comparison> Truth::Compare(const std::string& path) const {
  std::ifstream file(path);
  if (!file) return Error(StatusCode::kNotFound, fmt::format("the plugin wrote no report to {}", path));
  // What was reported, by name (empty for a guess), sends and bytes.
  std::map<std::tuple<std::string, std::uint64_t, Bytes>, std::uint64_t> reported;
  for (std::string line; std::getline(file, line);) {
    const std::size_t end = line.find(R"(,"sends")");
    const bool named = line.find(R"("by":"profiler")") != std::string::npos && end != std::string::npos;
    const std::string name = named ? line.substr(1, end - 1) : "";
    ++reported[{name, NumberAfter(line, R"("sends":)"), NumberAfter(line, R"("bytes":)")}];
  }
  Comparison comparison;
  for (const Coflow& coflow : coflows_) {
    if (coflow.sends == 0) continue;  // Nothing that a plugin could see.
    ++comparison.coflows;
    for (const std::string& name : {coflow.name, std::string()}) {
      const auto found = reported.find({name, coflow.sends, coflow.bytes});
      if (found == reported.end() || found->second == 0) continue;
      --found->second;
      ++comparison.coflows_right;
      comparison.sends_right += coflow.sends;
      break;
    }
  }
  return comparison;
}

}  // namespace weir::tools::emulate
