#include "scheduler/sim/waits.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
/// Ends are rounded up to ticks, and fluid bytes are sums of doubles: less than this is nothing.
constexpr double kNothing = 1e-6;

}  // namespace

double LinkWait::blocked() const {
  double sum = 0;
  for (const Blocker& blocker : blockers) {
    sum += blocker.ticks;
  }
  return sum;
}

WaitRecorder::WaitRecorder(const traces::Trace& trace, const Fabric& fabric, std::size_t coflow)
    : coflow_(coflow), capacity_(fabric.capacity().begin(), fabric.capacity().end()), local_(fabric.links(), kNone) {
  const auto add = [this](std::uint32_t link, Bytes bytes) {
    if (local_[link] == kNone) {
      local_[link] = static_cast<std::uint32_t>(links_.size());
      links_.emplace_back().wait.link = link;
    }
    links_[local_[link]].wait.bytes += static_cast<double>(bytes);
  };
  for (const traces::TraceFlow& flow : trace.coflows[coflow].flows) {
    add(flow.source, flow.bytes);
    add(fabric.ports() + flow.destination, flow.bytes);
    for (const std::uint32_t link : fabric.InnerLinks(flow.source, flow.destination)) {
      add(link, flow.bytes);
    }
  }
  for (Open& open : links_) {
    open.left = open.wait.bytes;
    open.wait.ideal = open.wait.bytes / capacity_[open.wait.link];
  }
  blocked_.resize(links_.size());
}

void WaitRecorder::OnStart(std::size_t coflow, std::int64_t /*now*/) {
  live_ |= coflow == coflow_;
}

void WaitRecorder::OnEnd(std::size_t coflow, std::int64_t now) {
  if (coflow != coflow_) {
    return;
  }
  live_ = false;
  // What rounding left over went with the last flow.
  for (Open& open : links_) {
    open.wait.until = open.left > kNothing * open.wait.bytes ? now : open.wait.until;
  }
}

void WaitRecorder::OnInterval(std::int64_t begin, std::int64_t end, std::span<const LinkUse> uses) {
  if (!live_) {
    return;
  }
  const auto ticks = static_cast<double>(end - begin);
  for (const LinkUse& use : uses) {
    if (local_[use.link] != kNone) {
      Charge(use, ticks);
      first_served_ = use.coflow == coflow_ && first_served_ < 0 ? begin : first_served_;
    }
  }
  for (Open& open : links_) {
    if (open.left > kNothing * open.wait.bytes) {
      open.wait.served += open.own * ticks;
      open.wait.unused += std::max(0.0, 1 - open.own - open.others) * ticks;
      open.left -= open.own * ticks * capacity_[open.wait.link];
      open.wait.until = end;
    }
    open.own = 0;
    open.others = 0;
  }
}

void WaitRecorder::Charge(const LinkUse& use, double ticks) {
  const std::uint32_t local = local_[use.link];
  Open& open = links_[local];
  const double share = use.rate / capacity_[use.link];
  if (use.coflow == coflow_) {
    open.own += share;
  } else if (open.left > kNothing * open.wait.bytes) {
    open.others += share;
    blocked_[local][use.coflow] += share * ticks;
  }
}

std::vector<LinkWait> WaitRecorder::Links() const {
  std::vector<LinkWait> waits;
  for (std::size_t local = 0; local < links_.size(); ++local) {
    LinkWait& wait = waits.emplace_back(links_[local].wait);
    for (const auto& [coflow, ticks] : blocked_[local]) {
      wait.blockers.push_back({coflow, ticks});
    }
    std::sort(wait.blockers.begin(), wait.blockers.end(), [](const Blocker& a, const Blocker& b) {
      return a.ticks != b.ticks ? a.ticks > b.ticks : a.coflow < b.coflow;
    });
  }
  std::sort(waits.begin(), waits.end(), [](const LinkWait& a, const LinkWait& b) {
    return a.until != b.until ? a.until > b.until : a.ideal != b.ideal ? a.ideal > b.ideal : a.link < b.link;
  });
  return waits;
}

}  // namespace weir::scheduler
