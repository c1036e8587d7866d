#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/share/max_min.h"

namespace weir::scheduler {

/// A tenant whose demands are correlated: to make one unit of progress it needs `demand[i]` on each of `links[i]`. It
/// is elastic: it can use any amount in these proportions. Spans are parallel, not owned and must outlive the call; a
/// link appears at most once.
struct CorrelatedTenant {
  std::span<const LinkIndex> links;
  std::span<const double> demand;  ///< >= 0; only ratios matter, for the largest is taken as 1.
  double weight = 1;               ///< > 0.
};

/// Shares of links for tenants with correlated, elastic demands. A tenant's progress is the least, over its links, of
/// its share over its demand; its isolation guarantee is the progress that it has at least, whatever others ask for.
/// One that needs a link without capacity, or nothing at all, gets nothing and takes nothing from others.
///
/// Owns scratch space so that repeated calls do not allocate. Thread: one at a time.
class CorrelatedShares {
 public:
  /// The largest progress for its weight that all tenants can have at once, P* = min over links of capacity over the
  /// sum of weighted demands; 0 without tenants. No allocation guarantees more (Chowdhury, Liu, Ghodsi and Stoica: HUG,
  /// NSDI 2016). O(links + demands).
  double OptimalGuarantee(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity);

  /// Dominant resource fairness for elastic demands: progress for its weight is max-min fair, so everybody has P*, and
  /// who is limited by no link of P*'s has more. Shares stay in proportion to demands. `progress` is resized to the
  /// tenants; a share is progress x demand over the largest demand (Ghodsi et al.: DRF, NSDI 2011). O(rounds x
  /// demands); a round ends with at least one tenant stopped.
  void Drf(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity,
           std::vector<double>& progress);

  /// HUG for tenants that may lie about their demands (same paper): first everybody gets P* x demand; then
  /// what is left of each link goes to those with demand on it, least share for its weight first, until it is full or
  /// all have P* for their weight there. No tenant gains progress by stating other demands. `shares` holds an entry for
  /// each demand, tenant after tenant. Returns P*. O(links + demands x rounds): the level up to which the least are
  /// raised falls to where it belongs in a few rounds, each of which leaves somebody above it; no order is needed.
  /// Which demands are on which link is only found anew when tenants use other links than at the last call.
  double Hug(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity,
             std::vector<BytesPerSecond>& shares);

  /// Of tenant k, at the last call.
  double largest_demand(std::size_t k) const { return largest_[k]; }

 private:
  struct Claim {
    double weight;       ///< 0: nothing is demanded.
    BytesPerSecond has;  ///< For a weight of 1, of what everybody gets first.
  };

  void Scale(std::span<const CorrelatedTenant> tenants, std::span<const BytesPerSecond> capacity);
  void Weigh(std::span<const CorrelatedTenant> tenants, std::size_t links);
  double LeastRatio(std::span<const BytesPerSecond> room, std::size_t* link) const;
  bool SameLinks(std::span<const CorrelatedTenant> tenants, std::size_t links) const;
  void IndexClaims(std::span<const CorrelatedTenant> tenants, std::size_t links);
  static BytesPerSecond LevelOf(std::span<const Claim> claims, double guarantee, BytesPerSecond capacity);

  std::vector<double> largest_;       ///< By tenant.
  std::vector<double> scale_;         ///< By tenant: 1 over its largest demand; 0: it gets nothing, or has stopped.
  std::vector<double> load_;          ///< By link: weighted demands of those that count.
  std::vector<BytesPerSecond> room_;  ///< By link; under HUG, the level up to which shares are raised.

  // Of the last Hug(), by demand, tenant after tenant.
  std::vector<LinkIndex> link_;
  std::vector<std::uint32_t> place_;  ///< In claims_.
  std::vector<Claim> claims_;         ///< Link after link.
  std::vector<std::size_t> begin_;    ///< By link, and one more: of its claims.
};

}  // namespace weir::scheduler
