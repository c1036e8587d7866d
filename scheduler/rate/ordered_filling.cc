#include "scheduler/rate/ordered_filling.h"

#include <algorithm>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Ports whose shares are that close, relative to each other, are full at once.
constexpr double kShareSlack = 1e-10;
constexpr std::uint64_t kNotSeen = UINT64_MAX;
/// Less than no room, for a port all of whose flows others have stopped.
constexpr double kOverfull = -1;
/// Steps taken back that cost as much as looking for the least share in every round.
constexpr std::size_t kStepsBackPerPort = 8;

double SumOneByOne(const double* values, const std::uint64_t* bits, std::size_t words) {
  double sum = 0;
  for (std::size_t word = 0; word < words; ++word) {
    ForBits(bits[word], static_cast<std::uint32_t>(word * 64), [&](std::uint32_t i) { sum += values[i]; });
  }
  return sum;
}

#if defined(__x86_64__)

/// Four sums, so that additions need not wait for each other.
__attribute__((target("avx512f"))) double SumEightAtOnce(const double* values, const std::uint64_t* bits,
                                                         std::size_t words) {
  __m512d sums[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd()};
  for (std::size_t word = 0; word < words; ++word) {
    const double* at = values + word * 64;
    const std::uint64_t set = bits[word];
    for (int i = 0; i < 8 && set >> (8 * i) != 0; i += 4) {
      for (int way = 0; way < 4; ++way) {
        const auto mask = static_cast<__mmask8>(set >> (8 * (i + way)));
        sums[way] = _mm512_mask_add_pd(sums[way], mask, sums[way], _mm512_maskz_loadu_pd(mask, at + 8 * (i + way)));
      }
    }
  }
  alignas(64) double parts[8];
  _mm512_store_pd(parts, _mm512_add_pd(_mm512_add_pd(sums[0], sums[1]), _mm512_add_pd(sums[2], sums[3])));
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

#endif

std::vector<OrderedFilling::SumKernel> Runnable() {
  std::vector<OrderedFilling::SumKernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back(&SumEightAtOnce);
  }
#endif
  kernels.push_back(&SumOneByOne);
  return kernels;
}

}  // namespace

std::span<const OrderedFilling::SumKernel> OrderedFilling::SumKernels() {
  static const std::vector<SumKernel> kernels = Runnable();
  return kernels;
}

std::size_t OrderedFilling::Fill(FlowGroup* group, std::span<const double> room) {
  Begin(group, room);
  if (!FollowOrder()) {
    Search();
  }
  Finish();
  return group->EndFilling();
}

void OrderedFilling::Begin(FlowGroup* group, std::span<const double> room) {
  group_ = group;
  room_ = room;
  group->BeginFilling();
  const auto uplinks = static_cast<std::uint32_t>(group->uplinks());
  const auto ports = static_cast<std::uint32_t>(group->port_links());
  level_.assign(ports, 0);
  taken_.resize(ports);
  seen_at_.assign(ports, kNotSeen);
  closings_.clear();
  deferred_.clear();
  for (Side& side : sides_) {
    const bool up = &side == &sides_[0];
    side.first = up ? 0 : uplinks;
    side.last = up ? uplinks : ports;
    side.closed_sum = 0;
    side.open = 0;
    side.open_bits.assign((side.last - side.first + 63) / 64, 0);
    for (std::uint32_t port = side.first; port < side.last; ++port) {
      const std::uint32_t place = port - side.first;
      const std::uint64_t open = group->Count(port) > 0 ? 1 : 0;
      side.open += static_cast<std::uint32_t>(open);
      side.open_bits[place / 64] |= open << (place % 64);
    }
    side.alive = side.open;
  }
  QueuePorts(group->port_order());
}

/// Those with live flows, the first one last.
void OrderedFilling::QueuePorts(std::span<const std::uint32_t> order) {
  pending_.resize(order.size());
  ended_.clear();
  std::size_t first = order.size();
  for (const std::uint32_t port : order) {
    if (group_->Count(port) > 0) {
      pending_[--first] = port;
    } else {
      ended_.push_back(port);
    }
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(first));
}

/// What closed ports at the other end have given to flows of this one.
inline double OrderedFilling::Taken(std::uint32_t port, const Side& other) const {
  return group_->Count(port) == other.alive
             ? other.closed_sum
             : sum_(&level_[other.first], group_->LivePartners(port), other.open_bits.size());
}

inline std::uint32_t OrderedFilling::Growing(std::uint32_t port, const Side& other) const {
  if (group_->Count(port) == other.alive) {
    return other.open;
  }
  const std::uint64_t* live = group_->LivePartners(port);
  std::uint32_t count = 0;
  for (std::size_t word = 0; word < other.open_bits.size(); ++word) {
    count += static_cast<std::uint32_t>(__builtin_popcountll(live[word] & other.open_bits[word]));
  }
  return count;
}

/// Infinite: it need not close.
inline double OrderedFilling::ShareOf(std::uint32_t port) {
  const Side& other = Other(port);
  const double taken = Taken(port, other);
  const double left = room_[port] - taken;
  if (const std::uint32_t growing = Growing(port, other); growing > 0) {
    return std::max(0.0, left) / growing;
  }
  taken_[port] = taken;
  seen_at_[port] = taken_back_;
  return left < -kShareSlack * room_[port] ? kOverfull : kInfinity;
}

/// At the share of the last one, where it is as good as that.
void OrderedFilling::Close(std::uint32_t port, double share) {
  const double last = closings_.empty() ? 0 : closings_.back().share;
  share = share <= last * (1 + kShareSlack) ? last : share;
  Side& side = sides_[port < sides_[1].first ? 0 : 1];
  const std::uint32_t place = port - side.first;
  closings_.push_back({port, share, side.closed_sum});
  side.closed_sum += share;
  --side.open;
  side.open_bits[place / 64] &= ~(std::uint64_t{1} << (place % 64));
  level_[port] = share;
}

void OrderedFilling::TakeBack() {
  const Closing& last = closings_.back();
  Side& side = sides_[last.port < sides_[1].first ? 0 : 1];
  const std::uint32_t place = last.port - side.first;
  side.closed_sum = last.closed_sum;
  ++side.open;
  side.open_bits[place / 64] |= std::uint64_t{1} << (place % 64);
  level_[last.port] = 0;
  pending_.push_back(last.port);
  closings_.pop_back();
  ++taken_back_;
}

bool OrderedFilling::FollowOrder() {
  const std::uint64_t limit = taken_back_ + kStepsBackPerPort * level_.size();
  while (!pending_.empty() && sides_[0].open > 0 && sides_[1].open > 0) {
    Place();
    if (taken_back_ > limit) {
      return false;
    }
  }
  while (DeferThoseThatFit()) {
    while (!pending_.empty()) {
      Place();
      if (taken_back_ > limit) {
        return false;
      }
    }
  }
  return true;
}

/// Closes the next port at its place among those that have closed.
void OrderedFilling::Place() {
  const std::uint32_t port = pending_.back();
  pending_.pop_back();
  double share = ShareOf(port);
  for (; !closings_.empty() && share < closings_.back().share * (1 - kShareSlack); share = ShareOf(port)) {
    TakeBack();
  }
  if (share == kInfinity) {
    deferred_.push_back(port);
  } else {
    Close(port, share);
  }
}

/// All flows have stopped, so whoever has not closed need not, unless less than nothing is left. True: such there are.
bool OrderedFilling::DeferThoseThatFit() {
  deferred_.insert(deferred_.end(), pending_.rbegin(), pending_.rend());
  pending_.clear();
  std::size_t kept = 0;
  for (const std::uint32_t port : deferred_) {
    const bool seen = seen_at_[port] == taken_back_;  // All that it has got is as it was.
    if (seen || ShareOf(port) == kInfinity) {
      deferred_[kept++] = port;
    } else {
      pending_.push_back(port);
    }
  }
  deferred_.resize(kept);
  return !pending_.empty();
}

/// From the start, the least share first.
void OrderedFilling::Search() {
  ++searches_;
  pending_.insert(pending_.end(), deferred_.begin(), deferred_.end());
  deferred_.clear();
  while (!closings_.empty()) {
    TakeBack();
  }
  std::sort(pending_.begin(), pending_.end());
  while (!pending_.empty()) {
    double least = kInfinity;
    std::size_t kept = 0;
    std::size_t first = 0;
    for (const std::uint32_t port : pending_) {
      if (Growing(port, Other(port)) == 0) {
        taken_[port] = Taken(port, Other(port));
        deferred_.push_back(port);
        continue;
      }
      if (const double share = ShareOf(port); share < least) {
        least = share;
        first = kept;
      }
      pending_[kept++] = port;
    }
    pending_.resize(kept);
    if (kept > 0) {
      Close(pending_[first], least);
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
}

/// Tells the group, and keeps the order for the next time.
void OrderedFilling::Finish() {
  const auto order = group_->port_order();
  std::size_t next = 0;
  for (const Closing& closing : closings_) {
    group_->ClosePort(closing.port, closing.share, [](std::uint32_t, std::uint64_t) {});
    group_->AddUse(closing.port, room_[closing.port]);
    order[next++] = closing.port;
  }
  for (const std::uint32_t port : deferred_) {
    group_->AddUse(port, std::min(room_[port], taken_[port]));
    order[next++] = port;
  }
  std::copy(ended_.begin(), ended_.end(), order.begin() + static_cast<std::ptrdiff_t>(next));
}

}  // namespace weir::scheduler
