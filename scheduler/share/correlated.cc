#include "scheduler/share/correlated.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

/// Room below this share of a link's capacity is a rounding error.
constexpr double kRoomSlack = 1e-9;

}  // namespace

void CorrelatedShares::Scale(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity) {
  scale_.assign(tenants.size(), 0.0);
  for (std::size_t k = 0; k < tenants.size(); ++k) {
    double largest = 0;
    bool blocked = false;
    for (std::size_t i = 0; i < tenants[k].links.size(); ++i) {
      largest = std::max(largest, tenants[k].demand[i]);
      blocked |= tenants[k].demand[i] > 0 && capacity[tenants[k].links[i]] <= 0;
    }
    scale_[k] = largest > 0 && !blocked ? 1 / largest : 0.0;
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

void CorrelatedShares::SortClaims(std::span<const CorrelatedTenant> tenants, std::size_t links) {
  begin_.assign(links + 1, 0);
  const auto for_each = [&](auto visit) {
    std::size_t share = 0;
    for (std::size_t k = 0; k < tenants.size(); ++k) {
      for (std::size_t i = 0; i < tenants[k].links.size(); ++i, ++share) {
        if (const double demand = tenants[k].demand[i] * scale_[k]; demand > 0) {
          visit(tenants[k].links[i], Claim{share, tenants[k].weight, demand});
        }
      }
    }
  };
  for_each([this](LinkIndex link, const Claim&) { ++begin_[link + 1]; });
  for (std::size_t link = 0; link < links; ++link) {
    begin_[link + 1] += begin_[link];
  }
  claims_.resize(begin_[links]);
  for_each([this](LinkIndex link, const Claim& claim) { claims_[begin_[link]++] = claim; });
  for (std::size_t link = links; link > 0; --link) {  // Each begin has moved to the next one's place.
    begin_[link] = begin_[link - 1];
  }
  begin_[0] = 0;
  for (std::size_t link = 0; link < links; ++link) {
    std::sort(claims_.begin() + static_cast<std::ptrdiff_t>(begin_[link]),
              claims_.begin() + static_cast<std::ptrdiff_t>(begin_[link + 1]), [](const Claim& a, const Claim& b) {
                return a.demand != b.demand ? a.demand < b.demand : a.share < b.share;
              });
  }
}

/// Raises the smallest shares for their weight together until the link is full or they are at the guarantee.
void CorrelatedShares::FillLink(std::span<const Claim> claims, double guarantee, BytesPerSecond capacity,
                                std::vector<BytesPerSecond>& shares) {
  double others = 0;  // What those keep that are not raised.
  for (const Claim& claim : claims) {
    others += claim.weight * claim.demand * guarantee;
  }
  double raised = 0;  // Weight.
  double level = guarantee;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    raised += claims[i].weight;
    others -= claims[i].weight * claims[i].demand * guarantee;
    const double next = i + 1 < claims.size() ? claims[i + 1].demand * guarantee : guarantee;
    if (raised * next + others >= capacity) {
      level = std::max((capacity - others) / raised, claims[i].demand * guarantee);
      break;
    }
  }
  for (const Claim& claim : claims) {
    shares[claim.share] = claim.weight * std::max(level, claim.demand * guarantee);
  }
}

double CorrelatedShares::Hug(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity,
                             std::vector<BytesPerSecond>& shares) {
  const double guarantee = OptimalGuarantee(tenants, capacity);
  std::size_t demands = 0;
  for (const CorrelatedTenant& tenant : tenants) {
    demands += tenant.links.size();
  }
  shares.assign(demands, 0.0);
  SortClaims(tenants, capacity.size());
  for (std::size_t link = 0; link < capacity.size(); ++link) {
    const std::span<const Claim> all(claims_);
    FillLink(all.subspan(begin_[link], begin_[link + 1] - begin_[link]), guarantee, capacity[link], shares);
  }
  return guarantee;
}

}  // namespace weir::scheduler
