#include "scheduler/rate/port_shares.h"

#include <algorithm>
#include <limits>

#include "scheduler/rate/bit_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Ports whose shares are that close, relative to each other, are full at once.
constexpr double kShareSlack = 1e-10;

void TakeOneByOne(double* room, double* weight, std::uint64_t bits, double rate, double step) {
  ForBits(bits, 0, [&](std::uint32_t position) {
    room[position] -= rate;
    weight[position] -= step;
  });
}

std::uint64_t SpreadOneByOne(std::uint64_t bits, std::uint64_t among) {
  std::uint64_t spread = 0;
  for (; bits != 0 && among != 0; bits >>= 1, among &= among - 1) {
    spread |= (bits & 1) != 0 ? among & -among : 0;
  }
  return spread;
}

#if defined(__x86_64__)

__attribute__((target("bmi2"))) std::uint64_t SpreadAtOnce(std::uint64_t bits, std::uint64_t among) {
  return _pdep_u64(bits, among);
}

__attribute__((target("avx512f"))) void TakeEightAtOnce(double* room, double* weight, std::uint64_t bits, double rate,
                                                        double step) {
  const __m512d rates = _mm512_set1_pd(rate);
  const __m512d steps = _mm512_set1_pd(step);
  for (; bits != 0; bits >>= 8, room += 8, weight += 8) {
    if (const auto mask = static_cast<__mmask8>(bits); mask != 0) {
      const __m512d rooms = _mm512_loadu_pd(room);
      const __m512d weights = _mm512_loadu_pd(weight);
      _mm512_storeu_pd(room, _mm512_mask_sub_pd(rooms, mask, rooms, rates));
      _mm512_storeu_pd(weight, _mm512_mask_sub_pd(weights, mask, weights, steps));
    }
  }
}

#endif

std::vector<PortShares::SpreadKernel> RunnableSpreads() {
  std::vector<PortShares::SpreadKernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("bmi2")) {
    kernels.push_back(&SpreadAtOnce);
  }
#endif
  kernels.push_back(&SpreadOneByOne);
  return kernels;
}

std::vector<PortShares::TakeAllKernel> Runnable() {
  std::vector<PortShares::TakeAllKernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back(&TakeEightAtOnce);
  }
#endif
  kernels.push_back(&TakeOneByOne);
  return kernels;
}

}  // namespace

std::span<const PortShares::TakeAllKernel> PortShares::TakeAllKernels() {
  static const std::vector<TakeAllKernel> kernels = Runnable();
  return kernels;
}

std::span<const PortShares::SpreadKernel> PortShares::SpreadKernels() {
  static const std::vector<SpreadKernel> kernels = RunnableSpreads();
  return kernels;
}

void PortShares::Open(std::size_t positions) {
  const std::size_t blocks = (positions + kBlock - 1) / kBlock;
  positions_ = positions;
  room_.assign((blocks + 1) * kBlock, 0);
  weight_.assign((blocks + 1) * kBlock, 0);
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
