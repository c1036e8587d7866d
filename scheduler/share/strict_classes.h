#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coflow/units.h"
#include "scheduler/share/max_min.h"

namespace weir::scheduler {

/// Strict classes with floors: class 0 takes what it can, class 1 what that leaves, and so on, but the floor of a class
/// is kept from better ones as far as the class can use it. Inside a class rates are weighted max-min fair. In the
/// result every flow is at its cap or crosses a full link.
///
/// Owns scratch space so that repeated calls do not allocate. Thread: one at a time. Cost: three MaxMin fills a class.
class StrictClasses {
 public:
  /// `class_of` is parallel to `flows`, each below floors.size(). `floors` are shares of every link's room, each at
  /// least 0, together at most 1; that of class 0 has no meaning, since nobody is better. `room` is what may be given
  /// on each link; it is lowered by what was given, never below 0. `rates` is resized to the flows.
  void Fill(std::span<const ShareFlow> flows, std::span<const std::uint8_t> class_of, std::span<const double> floors,
            std::span<BytesPerSecond> room, std::vector<BytesPerSecond>& rates);

 private:
  void Select(std::span<const ShareFlow> flows, std::span<const std::uint8_t> class_of, std::size_t which);
  void Reserve(std::span<const ShareFlow> flows, std::span<const std::uint8_t> class_of, std::span<const double> floors,
               std::span<const BytesPerSecond> room);
  void FillClass(std::size_t which, std::span<BytesPerSecond> room, std::vector<BytesPerSecond>& rates);
  void Backfill(std::span<BytesPerSecond> room, std::vector<BytesPerSecond>& rates);

  MaxMin max_min_;
  std::vector<ShareFlow> selected_;        ///< Of the class at hand,
  std::vector<std::uint32_t> flow_of_;     ///< and where they are among all flows.
  std::vector<BytesPerSecond> rates_;      ///< Theirs.
  std::vector<BytesPerSecond> available_;  ///< Per link, to the class at hand.
  std::vector<BytesPerSecond> reserved_;   ///< [class * links + link]: what its floor gives it.
};

}  // namespace weir::scheduler
