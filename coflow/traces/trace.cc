#include "coflow/traces/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace weir::traces {
namespace {

/// Up to so many ports for each entry of a list it is cheaper to mark the entries than to sort them.
constexpr std::size_t kPortsPerEntry = 8;

/// Where coflows stand in the file they come from, for messages.
class Places {
 public:
  Places(const Trace& trace, const std::string& origin, const std::vector<std::size_t>& lines)
      : origin_(origin), lines_(lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ids_.push_back(trace.coflows[i].id);
    }
  }

  /// "file:line" of the `nth` coflow with this id, counted from 0; "file" where lines are not known.
  std::string Of(std::uint64_t id, std::size_t nth) const {
    const std::size_t line = LineOf(id, nth);
    return line == 0 ? origin_ : fmt::format("{}:{}", origin_, line);
  }
  std::size_t LineOf(std::uint64_t id, std::size_t nth) const {
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] == id && nth-- == 0) {
        return lines_[i];
      }
    }
    return 0;
  }

 private:
  const std::string& origin_;
  const std::vector<std::size_t>& lines_;
  std::vector<std::uint64_t> ids_;
};

using Index = std::unordered_map<std::uint64_t, std::size_t>;

/// Removes coflows whose dependencies are all removed until nothing moves; what is left is on, or behind, a cycle.
/// Returns for each coflow how many of its dependencies are left.
std::vector<std::size_t> CountUnending(const Trace& trace, const Index& index) {
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
  while (!ready.empty()) {
    const std::size_t i = ready.back();
    ready.pop_back();
    for (const std::size_t child : children[i]) {
      if (--waiting[child] == 0) {
        ready.push_back(child);
      }
    }
  }
  return waiting;
}

Status RefuseCycles(const Trace& trace, const Index& index, const Places& places) {
  const std::vector<std::size_t> waiting = CountUnending(trace, index);
  const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](std::size_t n) { return n > 0; });
  if (stuck == waiting.end()) {
    return Status::Ok();
  }
  // From one that is stuck always on to a dependency that is stuck too: the first one met twice is on a cycle.
  auto at = static_cast<std::size_t>(stuck - waiting.begin());
  std::vector<bool> met(waiting.size());
  while (!met[at]) {
    met[at] = true;
    const auto& after = trace.coflows[at].after;
    at = index.at(*std::find_if(after.begin(), after.end(), [&](std::uint64_t p) { return waiting[index.at(p)] > 0; }));
  }
  const std::uint64_t id = trace.coflows[at].id;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: coflow {} waits for itself through its dependencies; break the cycle in \"after\"",
                            places.Of(id, 0), id));
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

void SortDistinct(std::vector<std::uint32_t>* ports) {
  const std::uint32_t largest = ports->empty() ? 0 : *std::max_element(ports->begin(), ports->end());
  if (largest > kPortsPerEntry * ports->size()) {
    std::sort(ports->begin(), ports->end());
    ports->erase(std::unique(ports->begin(), ports->end()), ports->end());
    return;
  }
  std::vector<std::uint8_t> seen(std::size_t{largest} + 1);
  for (const std::uint32_t port : *ports) {
    seen[port] = 1;
  }
  ports->clear();
  for (std::size_t port = 0; port < seen.size(); ++port) {
    if (seen[port] != 0) {
      ports->push_back(static_cast<std::uint32_t>(port));
    }
  }
}

void CountEnds(TraceCoflow* coflow) {
  std::vector<std::uint32_t> ends;
  ends.reserve(coflow->flows.size());
  for (const TraceFlow& flow : coflow->flows) {
    ends.push_back(flow.source);
  }
  SortDistinct(&ends);
  coflow->mappers = static_cast<std::uint32_t>(ends.size());
  ends.clear();
  for (const TraceFlow& flow : coflow->flows) {
    ends.push_back(flow.destination);
  }
  SortDistinct(&ends);
  coflow->reducers = static_cast<std::uint32_t>(ends.size());
}

Status Finish(Trace* trace, const std::string& origin, const std::vector<std::size_t>& lines) {
  const Places places(*trace, origin, lines);
  std::sort(trace->coflows.begin(), trace->coflows.end(), [](const TraceCoflow& a, const TraceCoflow& b) {
    return a.arrival != b.arrival ? a.arrival < b.arrival : a.id < b.id;
  });
  Index index;
  bool dependencies = false;
  for (std::size_t i = 0; i < trace->coflows.size(); ++i) {
    const std::uint64_t id = trace->coflows[i].id;
    dependencies |= !trace->coflows[i].after.empty();
    if (!index.emplace(id, i).second) {
      const std::size_t first = places.LineOf(id, 0);
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{}: coflow id {} occurs twice{}; ids must be unique", places.Of(id, 1), id,
                                first == 0 ? "" : fmt::format(", first on line {}", first)));
    }
  }
  for (const TraceCoflow& coflow : trace->coflows) {
    for (const std::uint64_t parent : coflow.after) {
      if (index.find(parent) == index.end()) {
        return Status(StatusCode::kInvalidArgument,
                      fmt::format("{}: coflow {} is after coflow {}, which is not in the trace",
                                  places.Of(coflow.id, 0), coflow.id, parent));
      }
    }
  }
  return dependencies ? RefuseCycles(*trace, index, places) : Status::Ok();
}

}  // namespace weir::traces
