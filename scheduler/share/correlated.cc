#include "scheduler/share/correlated.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::scheduler {
namespace {

/// Room below this share of a link's capacity is a rounding error.
constexpr double kRoomSlack = 1e-9;

/// 0 for none. Several ways, so that comparisons need not wait for each other.
double LargestOf(std::span<const double> demand) {
  constexpr std::size_t kWays = 8;
  double largest[kWays] = {};
  std::size_t i = 0;
  for (; i + kWays <= demand.size(); i += kWays) {
    for (std::size_t way = 0; way < kWays; ++way) {
      largest[way] = demand[i + way] > largest[way] ? demand[i + way] : largest[way];
    }
  }
  for (; i < demand.size(); ++i) {
    largest[0] = std::max(largest[0], demand[i]);
  }
  return *std::max_element(largest, largest + kWays);
}

}  // namespace

void CorrelatedShares::Scale(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity) {
  largest_.resize(tenants.size());
  scale_.resize(tenants.size());
  const bool all_alive = std::all_of(capacity.begin(), capacity.end(), [](double each) { return each > 0; });
  for (std::size_t k = 0; k < tenants.size(); ++k) {
    bool blocked = false;
    for (std::size_t i = 0; !all_alive && i < tenants[k].links.size(); ++i) {
      blocked |= tenants[k].demand[i] > 0 && capacity[tenants[k].links[i]] <= 0;
    }
    largest_[k] = LargestOf(tenants[k].demand);
    scale_[k] = largest_[k] > 0 && !blocked ? 1 / largest_[k] : 0.0;
  }
}

void CorrelatedShares::Weigh(std::span<const CorrelatedTenant> tenants, std::size_t links) {
  load_.assign(links, 0.0);
  for (std::size_t k = 0; k < tenants.size(); ++k) {
    for (std::size_t i = 0; i < tenants[k].links.size(); ++i) {
      load_[tenants[k].links[i]] += tenants[k].weight * tenants[k].demand[i] * scale_[k];
    }
  }
}

/// The least room over load, and the link that has it; infinity where nothing is loaded.
double CorrelatedShares::LeastRatio(std::span<const BytesPerSecond> room, std::size_t* link) const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < load_.size(); ++i) {
    if (load_[i] > 0 && room[i] / load_[i] < least) {
      least = room[i] / load_[i];
      *link = i;
    }
  }
  return least;
}

double CorrelatedShares::OptimalGuarantee(std::span<const CorrelatedTenant> tenants,
                                          std::span<const BytesPerSecond> capacity) {
  Scale(tenants, capacity);
  Weigh(tenants, capacity.size());
  std::size_t link = 0;
  const double least = LeastRatio(capacity, &link);
  return least < std::numeric_limits<double>::infinity() ? least : 0.0;
}

void CorrelatedShares::Drf(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity,
                           std::vector<double>& progress) {
  progress.assign(tenants.size(), 0.0);
  room_.assign(capacity.begin(), capacity.end());
  Scale(tenants, capacity);
  Weigh(tenants, capacity.size());
  double level = 0;
  std::size_t first_full = 0;
  for (double step = LeastRatio(room_, &first_full); step < std::numeric_limits<double>::infinity();
       step = LeastRatio(room_, &first_full)) {
    level += step;
    for (std::size_t link = 0; link < room_.size(); ++link) {
      room_[link] = std::max(0.0, room_[link] - step * load_[link]);
    }
    room_[first_full] = 0;
    for (std::size_t k = 0; k < tenants.size(); ++k) {
      const auto& [links, demand, weight] = tenants[k];
      for (std::size_t i = 0; i < links.size() && scale_[k] > 0; ++i) {
        if (demand[i] > 0 && room_[links[i]] <= capacity[links[i]] * kRoomSlack) {
          progress[k] = level * weight;
          scale_[k] = 0;
        }
      }
    }
    Weigh(tenants, capacity.size());
  }
}

bool CorrelatedShares::SameLinks(std::span<const CorrelatedTenant> tenants, std::size_t links) const {
  std::size_t first = 0;
  for (const CorrelatedTenant& tenant : tenants) {
    if (first + tenant.links.size() > link_.size() ||
        !std::equal(tenant.links.begin(), tenant.links.end(), link_.begin() + static_cast<std::ptrdiff_t>(first))) {
      return false;
    }
    first += tenant.links.size();
  }
  return first == link_.size() && begin_.size() == links + 1;
}

void CorrelatedShares::IndexClaims(std::span<const CorrelatedTenant> tenants, std::size_t links) {
  link_.clear();
  for (const CorrelatedTenant& tenant : tenants) {
    link_.insert(link_.end(), tenant.links.begin(), tenant.links.end());
  }
  begin_.assign(links + 1, 0);
  for (const LinkIndex link : link_) {
    ++begin_[link + 1];
  }
  for (std::size_t link = 0; link < links; ++link) {
    begin_[link + 1] += begin_[link];
  }
  place_.clear();
  for (const LinkIndex link : link_) {
    place_.push_back(static_cast<std::uint32_t>(begin_[link]++));
  }
  for (std::size_t link = links; link > 0; --link) {  // Each begin has moved to the next one's place.
    begin_[link] = begin_[link - 1];
  }
  begin_[0] = 0;
  claims_.resize(link_.size());
}

/// The level to which the smallest shares for their weight rise together: where the link is full, or the guarantee.
/// What the link needs for a level is convex in it, and what it would be if all were raised is too high: so Newton's
/// method comes down to where it belongs, and whoever is above the level once stays so.
BytesPerSecond CorrelatedShares::LevelOf(std::span<const Claim> claims, double guarantee, BytesPerSecond capacity) {
  double raised = 0;  // Weight.
  for (const Claim& claim : claims) {
    raised += claim.weight;
  }
  if (raised * guarantee <= capacity) {
    return guarantee;
  }
  double level = capacity / raised;
  for (double before = std::numeric_limits<double>::infinity(); raised > 0 && raised < before;) {
    before = std::exchange(raised, 0.0);
    double others = 0;  // What those keep that are not raised.
    for (const Claim& claim : claims) {
      const bool below = claim.has < level;
      raised += below ? claim.weight : 0;
      others += below ? 0 : claim.weight * claim.has;
    }
    level = raised > 0 ? (capacity - others) / raised : 0;
  }
  return level;
}

double CorrelatedShares::Hug(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity,
                             std::vector<BytesPerSecond>& shares) {
  const double guarantee = OptimalGuarantee(tenants, capacity);
  if (!SameLinks(tenants, capacity.size())) {
    IndexClaims(tenants, capacity.size());
  }
  shares.resize(link_.size());
  std::size_t at = 0;
  for (std::size_t k = 0; k < tenants.size(); ++k) {
    for (const double demand : tenants[k].demand) {
      shares[at] = demand * scale_[k] * guarantee;
      claims_[place_[at]] = {demand > 0 && scale_[k] > 0 ? tenants[k].weight : 0.0, shares[at]};
      ++at;
    }
  }
  room_.resize(capacity.size());
  for (std::size_t link = 0; link < capacity.size(); ++link) {
    const std::span<const Claim> all(claims_);
    room_[link] = LevelOf(all.subspan(begin_[link], begin_[link + 1] - begin_[link]), guarantee, capacity[link]);
  }
  at = 0;
  for (std::size_t k = 0; k < tenants.size(); ++k) {
    for (const double demand : tenants[k].demand) {
      shares[at] = demand > 0 && scale_[k] > 0 ? tenants[k].weight * std::max(room_[link_[at]], shares[at]) : 0.0;
      ++at;
    }
  }
  return guarantee;
}

}  // namespace weir::scheduler
