#include "scheduler/rate/port_shares.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Ports whose shares are that close, relative to each other, are full at once.
constexpr double kShareSlack = 1e-10;

/// Four minima at a time, so that none waits for the one before. What is not a number is passed over.
template <std::size_t kCount>
double Least(const double* values) {
  constexpr std::size_t kWays = 4;
  double least[kWays];
  std::fill_n(least, kWays, kInfinity);
  for (std::size_t i = 0; i < kCount; i += kWays) {
    for (std::size_t way = 0; way < kWays; ++way) {
      least[way] = values[i + way] < least[way] ? values[i + way] : least[way];
    }
  }
  return *std::min_element(least, least + kWays);
}

}  // namespace

void PortShares::Open(std::size_t positions) {
  const std::size_t blocks = (positions + kBlock - 1) / kBlock;
  room_.assign(positions, 0);
  weight_.assign(positions, 0);
  share_.assign(blocks * kBlock, kInfinity);
  least_.resize(blocks);
  stale_.assign(blocks, 1);
}

double PortShares::FindFull() {
  double share = kInfinity;
  for (std::size_t block = 0; block < least_.size(); ++block) {
    if (stale_[block] != 0) {
      stale_[block] = 0;
      least_[block] = Least<kBlock>(&share_[block * kBlock]);
    }
    share = std::min(share, least_[block]);
  }
  full_.clear();
  const double most = share * (1 + kShareSlack);
  for (std::size_t block = 0; share < kInfinity && block < least_.size(); ++block) {
    for (std::size_t i = block * kBlock; least_[block] <= most && i < (block + 1) * kBlock; ++i) {
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
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    Set(i, rooms[i], weights[i]);
  }
}

}  // namespace weir::scheduler
