#pragma once

#include <deque>
#include <string>

#include "coflow/units.h"

namespace weir::agents {

/// Turns among the jobs of one host while no coordinator is heard: first come, first served, one job at a time, each
/// for at most kTurnMax before the next one is let in front.
///
/// Knows nothing of links: a host's jobs are taken to share its uplink. Owned by AgentEngine. Thread: the agent's loop.
class LocalFifo {
 public:
  static constexpr Nanoseconds kTurnMax = 2 * kSecond;

  /// A job gained its first active lane, or lost its last. True if the holder changed.
  bool OnDemand(Nanoseconds now, const std::string& job, bool active);
  /// True if the holder's turn is over by time and the next one holds now.
  bool OnTime(Nanoseconds now);
  /// Empty: nobody waits, everybody may go.
  const std::string& holder() const;
  /// When the turn ends, 0 if it need not.
  Nanoseconds deadline() const { return queue_.size() < 2 ? 0 : turn_began_ + kTurnMax; }

 private:
  std::deque<std::string> queue_;  ///< Jobs with demand; the first one holds.
  Nanoseconds turn_began_ = 0;
};

}  // namespace weir::agents
