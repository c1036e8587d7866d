#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "scheduler/live/fabric.h"

namespace weir::scheduler {

/// What coflows are ordered by, smallest first; then by arrival and id.
enum class LiveKey {
  kFifo,   ///< Nothing: arrival.
  kScf,    ///< Bytes left.
  kSebf,   ///< Seconds that the busiest link needs for what is left (Varys, section 4).
  kGiven,  ///< A number from outside, of any order: a rank of BSSI, a queue of D-CLAS, an estimate.
};

/// The coflows' keys while time passes. The key of a coflow whose flows move falls along a line until one of its flows
/// is done or another of its links becomes the busiest one; whole bytes make it deviate from the line by less than a
/// known slack. So most comparisons need two lines, and nobody's flows. Only who is too close to the other for that, or
/// whose line has ended, has its key found from what its flows have left.
///
///   key |\__            line: since ... until         a, b: Before(a, b) can be said from the lines
///       |   \__ a       behind `until` the key is not below the line, but may be above it
///       |______\___ b
///
/// Owned by LiveScheduler. Cost: a comparison is O(1), a key that is found O(links of the coflow), a line O(its flows).
/// Thread: one at a time.
class FallingKeys {
 public:
  /// Settles coflows of `fabric`, which must outlive this.
  FallingKeys(LiveFabric* fabric, LiveKey kind);

  /// Whether `a` goes before `b` now.
  bool Before(CoflowSlot a, CoflowSlot b);
  /// Found from what its flows have left now.
  double Find(CoflowSlot slot);
  /// Takes a key that was found now.
  void Set(CoflowSlot slot, double key);
  /// The key as it is now; to be called before its flows change in another way than by moving. It stays until Set.
  void Freeze(CoflowSlot slot);
  /// Rates have changed.
  void EndLine(CoflowSlot slot) { lines_[slot].until = kEnded; }

  double key(CoflowSlot slot) const { return lines_[slot].key; }  ///< When it was found last.
  bool AnyFalls() const { return kind_ == LiveKey::kScf || kind_ == LiveKey::kSebf; }
  /// Whether time makes the key another one than key().
  bool Falls(CoflowSlot slot) const { return lines_[slot].per_ns != 0 || lines_[slot].until < fabric_.now; }
  /// Whether the key can be another one than when time passed the last time.
  bool MayHaveFallen(CoflowSlot slot) const { return Falls(slot) || lines_[slot].since == fabric_.now; }
  std::uint32_t busiest_row(CoflowSlot slot) const { return busiest_[slot]; }  ///< Of `sebf`, when the key was found.

 private:
  static constexpr Nanoseconds kEnded = -1;

  struct alignas(32) Line {
    double key = 0;    ///< At `since`, exactly.
    float per_ns = 0;  ///< It falls by so much.
    float slack = 0;   ///< 0 if it stays.
    Nanoseconds since = 0;
    Nanoseconds until = kEnded;
  };
  static_assert(sizeof(Line) == 32, "two in a line of the processor's cache, which comparisons wait for");

  Line& LineOfNow(CoflowSlot slot) {
    Line& line = lines_[slot];
    if (line.until < fabric_.now) {
      Refresh(slot);
    }
    return line;
  }
  double At(const Line& line) const { return line.key - line.per_ns * static_cast<double>(fabric_.now - line.since); }
  bool BeforeExactly(CoflowSlot a, CoflowSlot b);
  double Exact(CoflowSlot slot);
  void Refresh(CoflowSlot slot);
  double SumRates(CoflowSlot slot);
  void FindFallOfBytes(CoflowSlot slot, Line* line);
  void FindFallOfBusiest(CoflowSlot slot, Line* line);
  void EndAfter(double ns, Line* line) const;

  LiveFabric& fabric_;
  LiveKey kind_;
  std::vector<Line> lines_;             ///< By slot.
  std::vector<std::uint32_t> busiest_;  ///< By slot, of `sebf`.
  std::vector<WholeRate> use_;          ///< By row of the coflow that is looked at, and the sum behind them.
};

inline bool FallingKeys::Before(CoflowSlot a, CoflowSlot b) {
  const Line& mine = LineOfNow(a);
  const Line& other = LineOfNow(b);
  const double distance = At(mine) - At(other);
  return std::abs(distance) > mine.slack + other.slack ? distance < 0 : BeforeExactly(a, b);
}

}  // namespace weir::scheduler
