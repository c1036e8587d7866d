#include "agents/host/local_fifo.h"

#include <algorithm>

namespace weir::agents {

bool LocalFifo::OnDemand(Nanoseconds now, const std::string& job, bool active) {
  const auto at = std::find(queue_.begin(), queue_.end(), job);
  if (active == (at != queue_.end())) return false;
  if (active) {
    queue_.push_back(job);
    if (queue_.size() > 1) return false;
    turn_began_ = now;
    return true;
  }
  const bool held = at == queue_.begin();
  queue_.erase(at);
  if (held) turn_began_ = now;
  return held;
}

bool LocalFifo::OnTime(Nanoseconds now) {
  if (queue_.size() < 2 || now < turn_began_ + kTurnMax) return false;
  queue_.push_back(queue_.front());
  queue_.pop_front();
  turn_began_ = now;
  return true;
}

const std::string& LocalFifo::holder() const {
  static const std::string kNobody;
  return queue_.empty() ? kNobody : queue_.front();
}

}  // namespace weir::agents
