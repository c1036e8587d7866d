#include "scheduler/live/falling_keys.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

/// More than all roundings of one key and its line together, as a share of it.
constexpr double kRounding = 2e-7;

}  // namespace

FallingKeys::FallingKeys(LiveFabric* fabric, LiveKey kind)
    : fabric_(*fabric), kind_(kind), lines_(fabric->limits.coflows), busiest_(fabric->limits.coflows, 0) {
  use_.reserve(std::size_t{fabric->links()} + 1);
}

double FallingKeys::Find(CoflowSlot slot) {
  switch (kind_) {
    case LiveKey::kFifo:
      return 0;
    case LiveKey::kScf:
      fabric_.Settle(slot);
      return static_cast<double>(fabric_.bytes_left[slot]);
    case LiveKey::kSebf: {
      fabric_.Settle(slot);
      const LiveFabric::Busiest busiest = fabric_.BusiestLink(slot);
      busiest_[slot] = busiest.row;
      return busiest.seconds;
    }
    case LiveKey::kGiven:
      break;
  }
  return fabric_.given_key[slot];
}

/// For as long as time stands still, or nothing of it moves.
void FallingKeys::Set(CoflowSlot slot, double key) {
  const bool falls = AnyFalls() && fabric_.IsMoving(slot);
  lines_[slot] = {key, 0, 0, fabric_.now, falls ? fabric_.now : LiveFabric::kAlways};
}

void FallingKeys::Freeze(CoflowSlot slot) {
  const double key = Exact(slot);
  lines_[slot] = {key, 0, 0, fabric_.now, LiveFabric::kAlways};
}

double FallingKeys::Exact(CoflowSlot slot) {
  const Line& line = LineOfNow(slot);
  if (line.per_ns != 0 && line.since != fabric_.now) {
    Refresh(slot);
  }
  return line.key;
}

bool FallingKeys::BeforeExactly(CoflowSlot a, CoflowSlot b) {
  const double mine = Exact(a);
  const double other = Exact(b);
  if (mine != other) {
    return mine < other;
  }
  if (fabric_.arrival[a] != fabric_.arrival[b]) {
    return fabric_.arrival[a] < fabric_.arrival[b];
  }
  return fabric_.id[a] != fabric_.id[b] ? fabric_.id[a] < fabric_.id[b] : a < b;
}

void FallingKeys::Refresh(CoflowSlot slot) {
  Line& line = lines_[slot];
  line = {Find(slot), 0, 0, fabric_.now, LiveFabric::kAlways};
  if (fabric_.IsMoving(slot)) {
    if (kind_ == LiveKey::kScf) FindFallOfBytes(slot, &line);
    if (kind_ == LiveKey::kSebf) FindFallOfBusiest(slot, &line);
  }
}

/// Into `use_`: of each row, and of all. Returns the nanoseconds until the first flow is done.
double FallingKeys::SumRates(CoflowSlot slot) {
  double first_end = std::numeric_limits<double>::infinity();
  const std::size_t all = fabric_.Rows(slot).size();
  use_.assign(all + 1, 0);
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    const WholeRate rate = fabric_.rate[flow];
    if (rate == 0 || fabric_.remaining[flow] == 0) {
      continue;
    }
    use_[all] += rate;
    for (const LiveFabric::Hop& hop : fabric_.Path(flow)) {
      use_[hop.row] += rate;
    }
    first_end = std::min(first_end, static_cast<double>(fabric_.remaining[flow]) / static_cast<double>(rate));
  }
  return first_end * 1e9;
}

void FallingKeys::EndAfter(double ns, Line* line) const {
  const double room = static_cast<double>(LiveFabric::kAlways - fabric_.now);
  if (ns < room / 2) {
    line->until = fabric_.now + static_cast<Nanoseconds>(ns * (1 - kRounding));
  }
}

void FallingKeys::FindFallOfBytes(CoflowSlot slot, Line* line) {
  const double end = SumRates(slot);
  if (use_.back() > 0) {
    line->per_ns = static_cast<float>(static_cast<double>(use_.back()) * 1e-9);
    line->slack =
        static_cast<float>((static_cast<double>(fabric_.Flows(slot).size()) + line->key * kRounding) * (1 + kRounding));
    EndAfter(end, line);
  }
}

/// The line ends where that of another link may come above it. Links that fall as fast or faster never do.
void FallingKeys::FindFallOfBusiest(CoflowSlot slot, Line* line) {
  double end = SumRates(slot);
  const auto rows = fabric_.Rows(slot);
  const auto fall = [&](std::size_t row) {
    return static_cast<double>(use_[row]) * fabric_.seconds_per_byte[rows[row].link] * 1e-9;
  };
  const double per_ns = fall(busiest_[slot]);
  if (per_ns == 0) {
    return;
  }
  double whole_bytes = 0;  // What they make in time, on the link where that is most.
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (use_[row] > 0) {
      whole_bytes = std::max(whole_bytes, rows[row].flows * fabric_.seconds_per_byte[rows[row].link]);
    }
  }
  line->per_ns = static_cast<float>(per_ns);
  line->slack = static_cast<float>((2 * whole_bytes + line->key * kRounding) * (1 + kRounding));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double slower = per_ns - fall(row);
    if (slower > 0) {
      end = std::min(end, (line->key - fabric_.SecondsOf(rows[row]) + whole_bytes) / slower);
    }
  }
  EndAfter(end, line);
}

}  // namespace weir::scheduler
