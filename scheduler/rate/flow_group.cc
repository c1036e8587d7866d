#include "scheduler/rate/flow_group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kUnseen = UINT32_MAX;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Beyond it an end is never: the longest trace is shorter, and sums of two such times fit.
constexpr double kTicksMax = 1e18;
constexpr double kLateShare = 1e-3;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

template <typename Visit>
void ForPath(const Fabric& fabric, const MatchFlow& flow, Visit visit) {
  visit(flow.source);
  for (const std::uint32_t link : fabric.InnerLinks(flow.source, flow.destination)) {
    visit(link);
  }
  visit(fabric.ports() + flow.destination);
}

}  // namespace

void FlowGroup::Open(const Fabric& fabric, std::span<const MatchFlow> flows, std::int64_t now,
                     std::vector<std::uint32_t>* scratch) {
  flow_.assign(flows.begin(), flows.end());
  live_ = flows.size();
  settled_at_ = now;
  scale_ = 1;
  proportional_ = 0;
  finished_ = false;
  changed_ = true;
  idle_ = true;
  ends_stale_ = true;
  sums_known_ = true;
  filled_by_ = nullptr;
  foremost_.clear();
  asked_bytes_ = -1;
  IndexLinks(fabric, scratch);
  IndexFlows();
  room_seen_.clear();
  left_ = 0;
  rate_ = 0;
  for (const MatchFlow& flow : flow_) {
    left_ += static_cast<double>(flow.bytes);
  }
  open_ = left_;
}

/// Numbers the links in use, ascending, and writes every flow's path in these numbers.
void FlowGroup::IndexLinks(const Fabric& fabric, std::vector<std::uint32_t>* scratch) {
  links_.clear();
  for (const MatchFlow& flow : flow_) {
    ForPath(fabric, flow, [&](std::uint32_t link) {
      if ((*scratch)[link] == kUnseen) {
        (*scratch)[link] = 0;
        links_.push_back(link);
      }
    });
  }
  std::sort(links_.begin(), links_.end());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    (*scratch)[links_[i]] = static_cast<std::uint32_t>(i);
  }
  uplinks_ = static_cast<std::size_t>(std::lower_bound(links_.begin(), links_.end(), fabric.ports()) - links_.begin());
  downlinks_end_ =
      static_cast<std::size_t>(std::lower_bound(links_.begin(), links_.end(), 2 * fabric.ports()) - links_.begin());
  port_order_.resize(downlinks_end_);
  std::iota(port_order_.begin(), port_order_.end(), 0U);
  port_notes_.assign(downlinks_end_, 1);
  path_.clear();
  path_begin_.assign(1, 0);
  for (const MatchFlow& flow : flow_) {
    ForPath(fabric, flow, [&](std::uint32_t link) { path_.push_back((*scratch)[link]); });
    path_begin_.push_back(static_cast<std::uint32_t>(path_.size()));
  }
  for (const std::uint32_t link : links_) {
    (*scratch)[link] = kUnseen;
  }
}

void FlowGroup::IndexFlows() {
  const std::size_t n = links_.size();
  for (auto* column : {&load_, &open_load_, &use_}) {
    column->assign(n, 0);
  }
  for (auto* column : {&count_, &growing_, &stopping_, &flows_begin_, &flows_len_}) {
    column->assign(n, 0);
  }
  for (auto* column : {&level_, &old_level_, &service_}) {
    column->assign(n + 1, 0);
  }
  least_.assign(n + 1, kInfinity);
  stale_.assign(n + 1, 0);
  head_.assign(n + 1, kNobody);
  owned_.assign(n + 1, 0);
  ends_.assign(n + 1, kNever);
  for (const std::uint32_t local : path_) {
    ++count_[local];
  }
  std::uint32_t begin = 0;
  for (std::size_t local = 0; local < n; ++local) {
    flows_begin_[local] = begin;
    begin += count_[local];
  }
  IndexPairs();
  flows_of_link_.resize(path_.size());
  x_.resize(flow_.size());
  x_max_ = 0;
  owner_.resize(flow_.size());
  next_.resize(flow_.size());
  prev_.resize(flow_.size());
  for (std::uint32_t f = 0; f < flow_.size(); ++f) {
    x_[f] = static_cast<double>(flow_[f].bytes);
    x_max_ = std::max(x_max_, x_[f]);
    for (const std::uint32_t local : PathOf(f)) {
      flows_of_link_[flows_begin_[local] + flows_len_[local]++] = f;
      load_[local] += x_[f];
    }
    Link(f, static_cast<std::uint32_t>(n));
  }
  open_load_ = load_;
}

void FlowGroup::IndexPairs() {
  const std::size_t ups = uplinks_;
  const std::size_t downs = downlinks_end_ - uplinks_;
  for (BitRows* rows : {&all_, &owned_by_up_}) {
    rows->Reset(ups, downs);
  }
  for (BitRows* rows : {&live_of_down_, &owned_by_down_}) {
    rows->Reset(downs, ups);
  }
  stopped_.Reset(has_inner_links() ? ups : 0, downs);
  stopped_of_down_.Reset(has_inner_links() ? downs : 0, ups);
  first_flow_.assign(ups, 0);
  for (auto f = static_cast<std::uint32_t>(flow_.size()); f-- > 0;) {
    const auto path = PathOf(f);
    all_.Set(path.front(), path.back() - ups);
    live_of_down_.Set(path.back() - ups, path.front());
    first_flow_[path.front()] = f;
  }
  live_pairs_ = all_;
}

double FlowGroup::Left(std::size_t f) const {
  return Ended(f) || finished_ ? 0 : std::max(0.0, scale_ * (x_[f] - service_[owner_[f]]));
}

double FlowGroup::Rate(std::size_t f) const {
  return Ended(f) || finished_ ? 0 : Left(f) * proportional_ + level_[owner_[f]];
}

void FlowGroup::RefreshSums() {
  if (sums_known_) {
    return;
  }
  sums_known_ = true;
  std::fill(load_.begin(), load_.end(), 0);
  std::fill(use_.begin(), use_.end(), 0);
  for (std::size_t f = 0; f < flow_.size(); ++f) {
    if (!Ended(f)) {
      const double left = Left(f);
      const double rate = Rate(f);
      for (const std::uint32_t local : PathOf(f)) {
        load_[local] += left;
        use_[local] += rate;
      }
    }
  }
}

/// Calls visit(flow) for all flows of an owner; it may take the flow away from it.
template <typename Visit>
void FlowGroup::ForOwned(std::size_t o, Visit visit) {
  if (o >= downlinks_end_) {
    for (std::uint32_t f = head_[o]; f != kNobody;) {
      const std::uint32_t next = next_[f];
      visit(f);
      f = next;
    }
    return;
  }
  const bool up = o < uplinks_;
  const auto row = static_cast<std::uint32_t>(up ? o : o - uplinks_);
  const BitRows& owned = up ? owned_by_up_ : owned_by_down_;
  for (std::size_t word = 0; word < owned.words(); ++word) {
    ForBits(owned.Row(row)[word], static_cast<std::uint32_t>(word * 64),
            [&](std::uint32_t column) { visit(up ? FlowOf(row, column) : FlowOf(column, row)); });
  }
}

double FlowGroup::LargestSent() {
  FindAllForemost();
  double largest = 0;
  for (std::size_t o = 0; o < owned_.size(); ++o) {
    if (owned_[o] > 0) {
      const std::uint32_t f = foremost_[o].flow;
      largest = std::max(largest, static_cast<double>(flow_[f].bytes) - Left(f));
    }
  }
  return largest;
}

std::int64_t FlowGroup::WhenOneSent(double bytes) {
  if (live_ == 0 || finished_ || !(bytes < kTicksMax)) {
    return kNever;
  }
  if (bytes != asked_bytes_ || one_sent_ <= settled_at_) {
    asked_bytes_ = bytes;
    one_sent_ = FindOneSent(bytes);
  }
  return one_sent_;
}

std::int64_t FlowGroup::FindOneSent(double bytes) {
  FindAllForemost();
  double soonest = kTicksMax;
  for (std::size_t o = 0; o < owned_.size(); ++o) {
    // Of one owner all flows are equally fast but for their proportional parts.
    const double rate = level_[o] + proportional_ * scale_ * x_max_;
    if (owned_[o] > 0 && rate > 0) {
      const std::uint32_t f = foremost_[o].flow;
      const double to_send = bytes - (static_cast<double>(flow_[f].bytes) - Left(f));
      soonest = std::min(soonest, std::max(to_send, proportional_ > 0 ? kLateShare * bytes : 0.0) / rate);
    }
  }
  return soonest < kTicksMax ? settled_at_ + std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(soonest)))
                             : kNever;
}

void FlowGroup::FindAllForemost() {
  if (foremost_.empty()) {
    foremost_.assign(owned_.size(), {});
  }
  for (std::size_t o = 0; o < owned_.size(); ++o) {
    if (owned_[o] > 0 && (foremost_[o].flow == kNoFlow || scale_ < foremost_[o].until)) {
      FindForemost(o);
    }
  }
}

void FlowGroup::FindForemost(std::size_t o) {
  foremost_[o] = {};
  ForOwned(o, [this, o](std::uint32_t f) {
    foremost_[o].flow == kNoFlow ? void(foremost_[o].flow = f) : CompareForemost(o, f);
  });
}

/// Flow f of the owner is ahead of the foremost, or will be at a lower scale, or never.
void FlowGroup::CompareForemost(std::size_t o, std::uint32_t f) {
  Foremost& foremost = foremost_[o];
  const auto larger = static_cast<double>(flow_[f].bytes - flow_[foremost.flow].bytes);
  const double behind = x_[f] - x_[foremost.flow];
  const bool ahead = larger > scale_ * behind;
  if (ahead ? behind < 0 : behind > 0) {
    foremost.until = std::max(foremost.until, larger / behind);
  }
  foremost.flow = ahead ? f : foremost.flow;
}

void FlowGroup::Link(std::size_t f, std::uint32_t o) {
  owner_[f] = o;
  ++owned_[o];
  least_[o] = std::min(least_[o], x_[f]);
  if (!foremost_.empty()) {
    if (owned_[o] == 1) {
      foremost_[o] = {static_cast<std::uint32_t>(f), 0};
    } else if (foremost_[o].flow != kNoFlow) {
      CompareForemost(o, static_cast<std::uint32_t>(f));
    }
  }
  if (o < downlinks_end_) {
    NoteOwner(f, o, true);
    return;
  }
  prev_[f] = kNobody;
  next_[f] = head_[o];
  if (head_[o] != kNobody) {
    prev_[head_[o]] = static_cast<std::uint32_t>(f);
  }
  head_[o] = static_cast<std::uint32_t>(f);
}

void FlowGroup::NoteOwner(std::size_t f, std::uint32_t o, bool owned) {
  const auto path = PathOf(f);
  const std::size_t up = path.front();
  const std::size_t down = path.back() - uplinks_;
  if (o < uplinks_) {
    owned ? owned_by_up_.Set(up, down) : owned_by_up_.Clear(up, down);
  } else {
    owned ? owned_by_down_.Set(down, up) : owned_by_down_.Clear(down, up);
  }
}

void FlowGroup::Unlink(std::size_t f) {
  const std::uint32_t o = owner_[f];
  if (--owned_[o] == 0) {
    least_[o] = kInfinity;
    stale_[o] = 0;
  } else if (x_[f] <= least_[o]) {
    stale_[o] = 1;
  }
  if (!foremost_.empty() && foremost_[o].flow == f) {
    foremost_[o] = {};
  }
  if (o < downlinks_end_) {
    NoteOwner(f, o, false);
    return;
  }
  if (prev_[f] == kNobody) {
    head_[o] = next_[f];
  } else {
    next_[prev_[f]] = next_[f];
  }
  if (next_[f] != kNobody) {
    prev_[next_[f]] = prev_[f];
  }
}

void FlowGroup::Move(std::size_t f, std::uint32_t o) {
  if (owner_[f] == o) {
    return;
  }
  const double from = service_[owner_[f]];
  Unlink(f);
  x_[f] = service_[o] + (x_[f] - from);
  Link(f, o);
  ++moved_;
}

void FlowGroup::Rescan(std::size_t o) {
  least_[o] = kInfinity;
  ForOwned(o, [this, o](std::uint32_t f) { least_[o] = std::min(least_[o], x_[f]); });
  stale_[o] = 0;
}

void FlowGroup::DisownBut(std::span<const std::uint32_t> keeps) {
  const auto none = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t o = 0; o < none; ++o) {
    if (owned_[o] > 0) {
      ForOwned(o, [&](std::uint32_t f) {
        if (f != keeps[o]) {
          Move(f, none);
        }
      });
    }
  }
}

void FlowGroup::Settle(std::int64_t now) {
  const auto interval = static_cast<double>(now - settled_at_);
  settled_at_ = now;
  if (interval <= 0 || live_ == 0 || finished_ || idle_) {
    return;
  }
  if (sums_known_) {
    double* __restrict load = load_.data();
    const double* __restrict use = use_.data();
    for (std::size_t local = 0; local < load_.size(); ++local) {  // several by one instruction
      const double left = load[local] - use[local] * interval;
      load[local] = left > 0 ? left : 0;
    }
  }
  left_ = std::max(0.0, left_ - rate_ * interval);
  if (proportional_ <= 0) {
    const double step = interval / scale_;
    for (std::size_t o = 0; o < level_.size(); ++o) {
      service_[o] += level_[o] * step;
    }
    return;
  }
  const double shrink = 1 - proportional_ * interval;
  if (shrink <= kTickSlack * proportional_) {
    finished_ = true;
    return;
  }
  scale_ *= shrink;
  // Rates hold: what is left is less by `shrink`, so both parts are a larger share of it.
  proportional_ /= shrink;
  const double step = interval / scale_;
  for (std::size_t o = 0; o < level_.size(); ++o) {
    service_[o] += level_[o] * step;
    level_[o] /= shrink;
  }
  if (scale_ < kScaleMin) {
    Rescale();
  }
}

void FlowGroup::Rescale() {
  for (std::size_t f = 0; f < flow_.size(); ++f) {
    x_[f] = Ended(f) ? 0 : scale_ * (x_[f] - service_[owner_[f]]);
  }
  x_max_ *= scale_;
  scale_ = 1;
  std::fill(service_.begin(), service_.end(), 0);
  foremost_.clear();
  for (std::size_t o = 0; o < head_.size(); ++o) {
    Rescan(o);
  }
}

std::int64_t FlowGroup::NextEnd() {
  if (finished_ || live_ == 0) {
    return live_ > 0 ? settled_at_ : kNever;
  }
  if (ends_stale_) {
    ends_stale_ = false;
    next_end_ = kNever;
    for (std::size_t o = 0; o < ends_.size(); ++o) {
      ends_[o] = owned_[o] == 0 ? kNever : EndOf(o);
      next_end_ = std::min(next_end_, ends_[o]);
    }
  }
  return next_end_;
}

/// When the first flow of the owner ends; kNever: none does.
std::int64_t FlowGroup::EndOf(std::size_t o) {
  if (owned_[o] == 0 || (level_[o] <= 0 && proportional_ <= 0)) {
    return kNever;
  }
  if (stale_[o] != 0) {
    Rescan(o);
  }
  const double left = std::max(0.0, OwnerLeft(o));
  const double rate = left * proportional_ + level_[o];
  const double soonest = Done(left, rate, least_[o]) ? 0 : left / rate;
  return soonest < kTicksMax
             ? settled_at_ + std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(soonest - kTickSlack)))
             : kNever;
}

void FlowGroup::TakeEnded(std::uint32_t group, std::vector<EndedFlow>* ended) {
  NextEnd();
  next_end_ = kNever;
  for (std::size_t o = 0; o < ends_.size(); ++o) {
    if (finished_ || ends_[o] <= settled_at_) {
      ForOwned(o, [&](std::uint32_t f) {
        const double rate = proportional_ > 0 ? Rate(f) : level_[o];
        if (finished_ || Done(scale_ * (x_[f] - service_[o]), rate, x_[f])) {
          ended->push_back({group, flow_[f].source, flow_[f].destination, flow_[f].bytes});
          End(f);
        }
      });
      ends_[o] = EndOf(o);
    }
    next_end_ = std::min(next_end_, ends_[o]);
  }
}

void FlowGroup::End(std::size_t f) {
  // A flow that ended within a tick was counted to the tick's end: less than nothing is left, and links get that back.
  const double left = finished_ ? 0 : scale_ * (x_[f] - service_[owner_[f]]);
  const double rate = Rate(f);
  const auto path = PathOf(f);
  for (const std::uint32_t local : path) {
    --count_[local];
    load_[local] = count_[local] == 0 ? 0 : std::max(0.0, load_[local] - left);
    use_[local] = count_[local] == 0 ? 0 : std::max(0.0, use_[local] - rate);
  }
  if (filled_by_ != nullptr) {
    ended_pairs_.push_back({path.front(), path.back(), owner_[f]});
  }
  live_pairs_.Clear(path.front(), path.back() - uplinks_);
  live_of_down_.Clear(path.back() - uplinks_, path.front());
  Unlink(f);
  owner_[f] = kEnded;
  --live_;
  asked_bytes_ = -1;
  left_ = live_ == 0 ? 0 : std::max(0.0, left_ - left);
  rate_ = live_ == 0 ? 0 : std::max(0.0, rate_ - rate);
  changed_ = true;
}

std::span<const std::uint32_t> FlowGroup::FlowsOf(std::size_t local) {
  std::uint32_t* begin = flows_of_link_.data() + flows_begin_[local];
  if (flows_len_[local] != count_[local]) {
    std::uint32_t* end = std::remove_if(begin, begin + flows_len_[local], [this](std::uint32_t f) { return Ended(f); });
    flows_len_[local] = static_cast<std::uint32_t>(end - begin);
  }
  return {begin, flows_len_[local]};
}

}  // namespace weir::scheduler
