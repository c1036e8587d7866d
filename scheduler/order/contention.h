#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/active_table.h"

namespace weir::scheduler {

/// With how many others each live coflow competes: those with which it has flows left on a common link (Saath, CoNEXT
/// 2017, section 4). Kept from call to call, so that only coflows that have come, gone or ended flows on a link are
/// compared with the rest. Not thread safe; no allocation once the largest table has been seen.
class Contention {
 public:
  /// O(live coflows), and O(links + live coflows x links / 64) for each that has ended flows since the last time.
  void Update(const ActiveTable& table);
  /// Of a coflow that was live at the last Update().
  std::uint32_t Of(std::uint32_t slot) const { return static_cast<std::uint32_t>(rows_[slot].others); }

 private:
  struct Row {
    std::uint64_t id = 0;
    std::int64_t flows_ended = 0;
    std::int32_t others = 0;
    bool known = false, live = false;
  };

  void ForgetWhoLeft(const ActiveTable& table);
  void FindBusyLinks(std::span<const std::int64_t> flows_left);
  void SetBusyLinks(std::uint32_t slot);
  bool Share(const std::uint64_t* a, const std::uint64_t* b) const;

  std::size_t words_ = 0;
  std::vector<Row> rows_;                // by slot
  std::vector<std::uint64_t> busy_;      // by slot: the links on which it has flows left, 64 to a word
  std::vector<std::uint32_t> known_;     // slots that were live at the last Update()
  std::vector<std::uint64_t> busy_now_;  // what SetBusyLinks() sets
};

}  // namespace weir::scheduler
