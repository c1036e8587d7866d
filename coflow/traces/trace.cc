#include "coflow/traces/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace weir::traces {
namespace {

std::size_t CountDistinct(std::vector<std::uint32_t>* ports) {
  std::sort(ports->begin(), ports->end());
  return static_cast<std::size_t>(std::unique(ports->begin(), ports->end()) - ports->begin());
}

/// Removes coflows whose dependencies are all removed until nothing moves; what is left is on, or behind, a cycle.
Status RefuseCycles(const Trace& trace, const std::unordered_map<std::uint64_t, std::size_t>& index,
                    const std::string& origin) {
  std::vector<std::size_t> waiting(trace.coflows.size());
  std::vector<std::vector<std::size_t>> children(trace.coflows.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < trace.coflows.size(); ++i) {
    waiting[i] = trace.coflows[i].after.size();
    if (waiting[i] == 0) {
      ready.push_back(i);
    }
    for (const std::uint64_t parent : trace.coflows[i].after) {
      children[index.at(parent)].push_back(i);
    }
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::size_t i = ready.back();
    ready.pop_back();
    ++done;
    for (const std::size_t child : children[i]) {
      if (--waiting[child] == 0) {
        ready.push_back(child);
      }
    }
  }
  if (done == trace.coflows.size()) {
    return Status::Ok();
  }
  const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](std::size_t n) { return n > 0; });
  const auto id = trace.coflows[static_cast<std::size_t>(stuck - waiting.begin())].id;
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("{}: coflow {} waits for itself through its dependencies; break the cycle in \"after\"", origin, id));
}

}  // namespace

std::size_t Trace::FlowCount() const {
  std::size_t count = 0;
  for (const TraceCoflow& coflow : coflows) {
    count += coflow.flows.size();
  }
  return count;
}

Bytes Trace::TotalBytes() const {
  Bytes total = 0;
  for (const TraceCoflow& coflow : coflows) {
    for (const TraceFlow& flow : coflow.flows) {
      total += flow.bytes;
    }
  }
  return total;
}

void CountEnds(TraceCoflow* coflow) {
  std::vector<std::uint32_t> ends;
  ends.reserve(coflow->flows.size());
  for (const TraceFlow& flow : coflow->flows) {
    ends.push_back(flow.source);
  }
  coflow->mappers = static_cast<std::uint32_t>(CountDistinct(&ends));
  ends.clear();
  for (const TraceFlow& flow : coflow->flows) {
    ends.push_back(flow.destination);
  }
  coflow->reducers = static_cast<std::uint32_t>(CountDistinct(&ends));
}

Status Finish(Trace* trace, const std::string& origin) {
  std::sort(trace->coflows.begin(), trace->coflows.end(), [](const TraceCoflow& a, const TraceCoflow& b) {
    return a.arrival != b.arrival ? a.arrival < b.arrival : a.id < b.id;
  });
  std::unordered_map<std::uint64_t, std::size_t> index;
  bool dependencies = false;
  for (std::size_t i = 0; i < trace->coflows.size(); ++i) {
    dependencies |= !trace->coflows[i].after.empty();
    if (!index.emplace(trace->coflows[i].id, i).second) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{}: coflow id {} occurs twice; ids must be unique", origin, trace->coflows[i].id));
    }
  }
  for (const TraceCoflow& coflow : trace->coflows) {
    for (const std::uint64_t parent : coflow.after) {
      if (index.find(parent) == index.end()) {
        return Status(
            StatusCode::kInvalidArgument,
            fmt::format("{}: coflow {} is after coflow {}, which is not in the trace", origin, coflow.id, parent));
      }
    }
  }
  return dependencies ? RefuseCycles(*trace, index, origin) : Status::Ok();
}

}  // namespace weir::traces
