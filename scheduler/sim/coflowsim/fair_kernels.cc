#include "scheduler/sim/coflowsim/fair_kernels.h"

#include <cstring>
#include <vector>

#include "scheduler/sim/coflowsim/options.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::scheduler::coflowsim {
namespace {

/// Two doubles, which every x86-64 and AArch64 subtracts and compares at once.
using Pair = double __attribute__((vector_size(16)));
constexpr std::size_t kPairs = FairStep::kLanes / 2;

Pair Load(const double* from) {
  Pair pair;
  std::memcpy(&pair, from, sizeof(Pair));
  return pair;
}

Pair Both(double value) {
  return Pair{value, value};
}

/// What a flow that has ended moves is zero, because nothing is left of it.
inline void MovePair(Pair of_sender, Pair of_receiver, double* at, Pair* left, Pair* ending) {
  Pair remaining = Load(at);
  Pair moved = of_sender < of_receiver ? of_sender : of_receiver;
  moved = moved < remaining ? moved : remaining;
  remaining -= moved;
  *left -= moved;
  const Pair last = remaining > Both(kZero) ? Pair{} : moved;
  *ending = last > *ending ? last : *ending;
  std::memcpy(at, &remaining, sizeof(Pair));
}

void StepPairs(FairStep* step) {
  Pair down[kPairs];
  Pair left[kPairs];
  Pair ending[kPairs] = {};
  std::memcpy(down, step->down, sizeof(down));
  std::memcpy(left, step->left, sizeof(left));
  for (const FairStep::Row& row : step->rows) {
    double* at = step->remaining + row.sender * FairStep::kLanes;
    const Pair of_sender = Both(step->up[step->senders[row.sender]]);
    // Written out, for then all of them stay in registers.
    MovePair(of_sender, down[0], at, &left[0], &ending[0]);
    MovePair(of_sender, down[1], at + 2, &left[1], &ending[1]);
    MovePair(of_sender, down[2], at + 4, &left[2], &ending[2]);
    MovePair(of_sender, down[3], at + 6, &left[3], &ending[3]);
  }
  std::memcpy(step->left, left, sizeof(left));
  std::memcpy(step->ending, ending, sizeof(ending));
}

#if defined(__x86_64__)

/// Eight doubles. Written with the compiler's vectors and not with intrinsics, at which GCC 12 warns of its own
/// headers.
using Eight = double __attribute__((vector_size(64)));

__attribute__((target("avx512f"))) void StepWithAvx512(FairStep* step) {
  Eight down;
  Eight left;
  Eight ending = {};
  std::memcpy(&down, step->down, sizeof(down));
  std::memcpy(&left, step->left, sizeof(left));
  for (const FairStep::Row& row : step->rows) {
    double* at = step->remaining + row.sender * FairStep::kLanes;
    const Eight of_sender = step->up[step->senders[row.sender]] - Eight{};
    Eight remaining;
    std::memcpy(&remaining, at, sizeof(remaining));
    Eight moved = of_sender < down ? of_sender : down;
    moved = moved < remaining ? moved : remaining;
    remaining -= moved;
    left -= moved;
    const Eight last = remaining > kZero - Eight{} ? Eight{} : moved;
    ending = last > ending ? last : ending;
    std::memcpy(at, &remaining, sizeof(remaining));
  }
  std::memcpy(step->left, &left, sizeof(left));
  std::memcpy(step->ending, &ending, sizeof(ending));
}

__attribute__((target("avx2"))) void StepWithAvx2(FairStep* step) {
  for (std::size_t half = 0; half < FairStep::kLanes; half += 4) {
    const __m256d down = _mm256_loadu_pd(step->down + half);
    __m256d left = _mm256_loadu_pd(step->left + half);
    __m256d ending = _mm256_setzero_pd();
    for (const FairStep::Row& row : step->rows) {
      double* at = step->remaining + row.sender * FairStep::kLanes + half;
      const __m256d of_sender = _mm256_set1_pd(step->up[step->senders[row.sender]]);
      const __m256d before = _mm256_loadu_pd(at);
      const __m256d moved = _mm256_min_pd(_mm256_min_pd(of_sender, down), before);
      const __m256d after = _mm256_sub_pd(before, moved);
      left = _mm256_sub_pd(left, moved);
      const __m256d goes_on = _mm256_cmp_pd(after, _mm256_set1_pd(kZero), _CMP_GT_OQ);
      ending = _mm256_max_pd(_mm256_andnot_pd(goes_on, moved), ending);
      _mm256_storeu_pd(at, after);
    }
    _mm256_storeu_pd(step->left + half, left);
    _mm256_storeu_pd(step->ending + half, ending);
  }
}

#endif

std::vector<FairKernel> Runnable() {
  std::vector<FairKernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back(&StepWithAvx512);
  }
  if (__builtin_cpu_supports("avx2")) {
    kernels.push_back(&StepWithAvx2);
  }
#endif
  kernels.push_back(&StepPairs);
  return kernels;
}

}  // namespace

std::span<const FairKernel> FairKernels() {
  static const std::vector<FairKernel> kernels = Runnable();
  return kernels;
}

}  // namespace weir::scheduler::coflowsim
