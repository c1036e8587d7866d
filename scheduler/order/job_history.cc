#include "scheduler/order/job_history.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

constexpr double kSteady = 0.1;

}  // namespace

void JobHistory::Learn(const ActiveTable& table, std::uint32_t slot) {
  if (table.kin[slot] == 0) {
    return;
  }
  ++lessons_;
  const auto [at, first] = past_.try_emplace(table.kin[slot]);
  Past& past = at->second;
  const std::int64_t before = past.bytes;
  const auto ended = table.EndedBytes(slot);
  past.bytes = 0;
  past.received.clear();
  for (std::uint32_t port = 0; port < table.ports(); ++port) {
    if (const std::int64_t bytes = ended[table.ports() + port]; bytes > 0) {
      past.received.push_back({port, bytes});
      past.bytes += bytes;
    }
  }
  const auto [smaller, larger] = std::minmax(before, past.bytes);
  past.steady = first || static_cast<double>(larger - smaller) <= kSteady * static_cast<double>(larger);
}

bool JobHistory::Foresees(const ActiveTable& table, std::uint32_t slot) const {
  const auto at = table.kin[slot] == 0 ? past_.end() : past_.find(table.kin[slot]);
  return at != past_.end() && at->second.steady &&
         static_cast<double>(table.bytes_sent[slot]) <= (1 + kSteady) * static_cast<double>(at->second.bytes);
}

void JobHistory::LeftAtReceivers(const ActiveTable& table, std::uint32_t slot, std::span<double> left) const {
  const auto attained = table.Attained(slot);
  std::ranges::fill(left, 0);
  for (const auto [port, bytes] : past_.at(table.kin[slot]).received) {
    left[port] = static_cast<double>(std::max<std::int64_t>(0, bytes - attained[table.ports() + port]));
  }
}

}  // namespace weir::scheduler
