#include "scheduler/rate/port_shares.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Ports whose shares are that close, relative to each other, are full at once.
constexpr double kShareSlack = 1e-10;

/// Eight minima at a time, so that none waits for the one before. What is not a number is passed over.
double Least(std::span<const double> values) {
  constexpr std::size_t kWays = 8;
  double least[kWays];
  std::fill_n(least, kWays, kInfinity);
  std::size_t i = 0;
  for (; i + kWays <= values.size(); i += kWays) {
    for (std::size_t way = 0; way < kWays; ++way) {
      least[way] = values[i + way] < least[way] ? values[i + way] : least[way];
    }
  }
  for (; i < values.size(); ++i) {
    least[0] = values[i] < least[0] ? values[i] : least[0];
  }
  return *std::min_element(least, least + kWays);
}

}  // namespace

void PortShares::Open(std::size_t positions, std::size_t uplinks) {
  room_.assign(positions, 0);
  weight_.assign(positions, 0);
  share_.resize(positions);
  sides_[0] = {0, uplinks, 0, true, false};
  sides_[1] = {uplinks, positions, 0, true, false};
}

void PortShares::Close(std::size_t position) {
  weight_[position] = 0;
  share_[position] = kInfinity;
  sides_[IsUplink(position) ? 0 : 1].closed = true;
}

void PortShares::Refresh(Side* side) {
  if (side->stale) {
    double* share = share_.data();
    const double* room = room_.data();
    const double* weight = weight_.data();
    for (std::size_t i = side->begin; i < side->end; ++i) {
      share[i] = (room[i] > 0 ? room[i] : 0) / weight[i];
    }
  }
  if (side->stale || side->closed) {
    side->stale = side->closed = false;
    side->least = Least(std::span<const double>(share_).subspan(side->begin, side->end - side->begin));
  }
}

double PortShares::FindFull() {
  Refresh(&sides_[0]);
  Refresh(&sides_[1]);
  full_.clear();
  const double share = std::min(sides_[0].least, sides_[1].least);
  const double most = share * (1 + kShareSlack);
  for (const Side& side : sides_) {
    for (std::size_t i = side.begin; share < kInfinity && side.least <= most && i < side.end; ++i) {
      if (share_[i] <= most) {
        full_.push_back(static_cast<std::uint32_t>(i));
      }
    }
  }
  return share;
}

void PortShares::Save(std::vector<double>* rooms, std::vector<double>* weights) const {
  rooms->insert(rooms->end(), room_.begin(), room_.end());
  weights->insert(weights->end(), weight_.begin(), weight_.end());
}

void PortShares::Restore(std::span<const double> rooms, std::span<const double> weights) {
  std::copy(rooms.begin(), rooms.end(), room_.begin());
  std::copy(weights.begin(), weights.end(), weight_.begin());
  sides_[0].stale = sides_[1].stale = true;
}

}  // namespace weir::scheduler
