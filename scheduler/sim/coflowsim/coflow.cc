#include "scheduler/sim/coflowsim/coflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "scheduler/sim/coflowsim/java_random.h"
#include "scheduler/sim/coflowsim/options.h"

namespace weir::scheduler::coflowsim {
namespace {

constexpr std::uint64_t kDeadlineSeed = 17;
constexpr Bytes kMegabyte = 1'048'576;

/// `bytes` rounded up to a multiple of `unit`.
Bytes RoundUp(Bytes bytes, Bytes unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// One reducer as a trace states it: a run of flows to one port, of which the first comes from the first sender.
struct Reducer {
  std::uint32_t port = 0;
  Bytes bytes = 0;
  Bytes flows = 0;
  Bytes smallest = 0;
  Bytes largest = 0;
};

std::vector<Reducer> ReducersOf(const traces::TraceCoflow& coflow) {
  std::vector<Reducer> reducers;
  for (const traces::TraceFlow& flow : coflow.flows) {
    if (reducers.empty() || flow.destination != reducers.back().port || flow.source == coflow.flows.front().source) {
      reducers.push_back({flow.destination, 0, 0, flow.bytes, flow.bytes});
    }
    Reducer& reducer = reducers.back();
    reducer.bytes += flow.bytes;
    ++reducer.flows;
    reducer.smallest = std::min(reducer.smallest, flow.bytes);
    reducer.largest = std::max(reducer.largest, flow.bytes);
  }
  return reducers;
}

/// A reducer with fewer bytes than senders has flows of one byte from the first of them alone.
bool IsEvenSplit(const Reducer& reducer, Bytes senders) {
  return reducer.flows == std::min(senders, reducer.bytes) && reducer.largest - reducer.smallest <= 1;
}

Status CheckKnown(const traces::TraceCoflow& coflow) {
  if (coflow.flows.empty() || !coflow.after.empty() || !coflow.size_known || coflow.deadline != 0 ||
      coflow.weight != 1.0) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("coflow {} has no flows, or dependencies, a deadline, a weight or an unknown size, which "
                              "CoflowSim does not know; leave the compatible mode out",
                              coflow.id));
  }
  return Status::Ok();
}

Status FillSizes(const traces::TraceCoflow& from, Coflow* to) {
  std::map<std::uint32_t, Bytes> stated;
  for (const Reducer& reducer : ReducersOf(from)) {
    if (!IsEvenSplit(reducer, to->senders.size())) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("coflow {} does not split what port {} receives evenly over its {} senders, which is "
                                "all that CoflowSim knows; leave the compatible mode out",
                                from.id, reducer.port, to->senders.size()));
    }
    stated[reducer.port] += RoundUp(reducer.bytes, kMegabyte);
  }
  for (const auto& [port, bytes] : stated) {
    to->receivers.push_back(port);
    to->stated_bytes.push_back(static_cast<double>(bytes));
    to->bytes.push_back(static_cast<double>(RoundUp(bytes, kMegabyte * to->senders.size())));
  }
  to->largest = *std::max_element(to->bytes.begin(), to->bytes.end());
  const double total = std::accumulate(to->bytes.begin(), to->bytes.end(), 0.0);
  to->bottleneck = std::max(to->largest, total / static_cast<double>(to->senders.size()));
  if (to->bottleneck / kStepBytes * static_cast<double>(kStepMs) > static_cast<double>(kEndMs)) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("coflow {} has {:.0f} MB on one port, CoflowSim's day has room for {}", from.id,
                              to->bottleneck / kStepBytes, kEndMs / kStepMs));
  }
  return Status::Ok();
}

void FillSenders(const traces::TraceCoflow& from, Coflow* to) {
  for (const traces::TraceFlow& flow : from.flows) {
    to->senders.push_back(flow.source);
  }
  traces::SortDistinct(&to->senders);
}

}  // namespace

Result<std::vector<Coflow>> ReadCoflows(const traces::Trace& trace, double deadline_factor) {
  std::vector<Coflow> coflows;
  coflows.reserve(trace.coflows.size());
  JavaRandom random(kDeadlineSeed);
  for (std::size_t i = 0; i < trace.coflows.size(); ++i) {
    const traces::TraceCoflow& from = trace.coflows[i];
    if (Status status = CheckKnown(from); !status.ok()) {
      return tl::unexpected(std::move(status));
    }
    Coflow& coflow = coflows.emplace_back();
    coflow.index = i;
    coflow.arrival_ms = static_cast<double>(from.arrival) / static_cast<double>(kMillisecond);
    FillSenders(from, &coflow);
    if (Status status = FillSizes(from, &coflow); !status.ok()) {
      return tl::unexpected(std::move(status));
    }
    // CoflowSim counts 1,000 milliseconds to a second here and 1,024 elsewhere.
    const double multiple = 1.0 + random.NextDouble() * deadline_factor;
    coflow.deadline_ms = coflow.bottleneck / kPortBytes * multiple * 1000;
  }
  return coflows;
}

}  // namespace weir::scheduler::coflowsim
