#include "scheduler/rate/port_shares.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Ports whose shares are that close, relative to each other, are full at once.
constexpr double kShareSlack = 1e-10;

}  // namespace

void PortShares::Open(std::size_t positions) {
  const std::size_t blocks = (positions + kBlock - 1) / kBlock;
  positions_ = positions;
  room_.assign(blocks * kBlock, 0);
  weight_.assign(blocks * kBlock, 0);
  share_.resize(blocks * kBlock);
  least_.assign(blocks, 0);
  stale_.assign(blocks, 1);
}

/// All shares of a block, several by one instruction: hence the plain loops over arrays that do not overlap. Whatever
/// is not a number is passed over.
void PortShares::Divide(std::size_t block) {
  const double* __restrict room = &room_[block * kBlock];
  const double* __restrict weight = &weight_[block * kBlock];
  double* __restrict share = &share_[block * kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) {
    share[i] = (room[i] > 0 ? room[i] : 0) / weight[i];
  }
  constexpr std::size_t kWays = 4;
  double least[kWays] = {kInfinity, kInfinity, kInfinity, kInfinity};
  for (std::size_t i = 0; i < kBlock; i += kWays) {
    for (std::size_t way = 0; way < kWays; ++way) {
      least[way] = share[i + way] < least[way] ? share[i + way] : least[way];
    }
  }
  least_[block] = std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  stale_[block] = 0;
}

double PortShares::FindFull() {
  const std::size_t blocks = least_.size();
  std::size_t first = 0;
  for (std::size_t block = 1; block < blocks; ++block) {
    first = least_[block] < least_[first] ? block : first;
  }
  double share = kInfinity;
  double most = kInfinity;
  // From the block that seems to have the least, so that few others can have less.
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t block = i == 0 ? first : i <= first ? i - 1 : i;
    if (least_[block] > most) {
      continue;
    }
    if (stale_[block] != 0) {
      Divide(block);
    }
    share = std::min(share, least_[block]);
    most = share * (1 + kShareSlack);
  }
  full_.clear();
  for (std::size_t block = 0; share < kInfinity && block < blocks; ++block) {
    for (std::size_t i = block * kBlock; least_[block] <= most && i < (block + 1) * kBlock; ++i) {
      if (share_[i] <= most) {
        full_.push_back(static_cast<std::uint32_t>(i));
      }
    }
  }
  return share;
}

void PortShares::Save(std::vector<double>* rooms, std::vector<double>* weights) const {
  rooms->insert(rooms->end(), room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(positions_));
  weights->insert(weights->end(), weight_.begin(), weight_.begin() + static_cast<std::ptrdiff_t>(positions_));
}

void PortShares::Restore(std::span<const double> rooms, std::span<const double> weights) {
  std::copy(rooms.begin(), rooms.end(), room_.begin());
  std::copy(weights.begin(), weights.end(), weight_.begin());
  std::fill(least_.begin(), least_.end(), 0);
  std::fill(stale_.begin(), stale_.end(), 1);
}

}  // namespace weir::scheduler
