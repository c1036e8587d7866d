#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/rate/fabric.h"
#include "scheduler/sim/observer.h"

namespace weir::tools {

/// Keeps what the HTML report shows of a run: how busy every link was over time, and when every coflow was served.
/// Memory is bounded by links and coflows, not by events: time is cut into bins that get twice as wide whenever they
/// run out.
class RunRecorder final : public scheduler::SimObserver {
 public:
  RunRecorder(std::size_t coflows, const scheduler::Fabric& fabric);

  void OnStart(std::size_t coflow, std::int64_t now) override;
  void OnEnd(std::size_t coflow, std::int64_t now) override;
  void OnInterval(std::int64_t begin, std::int64_t end, std::span<const scheduler::LinkUse> uses) override;

  std::int64_t origin() const { return origin_; }  ///< Ticks; the first start.
  std::int64_t bin_ticks() const { return bin_; }
  std::size_t bins() const;  ///< Up to the last end.
  std::size_t links() const { return capacity_.size(); }
  std::uint32_t ports() const { return ports_; }
  /// Share of its capacity at the start that the link moved in that bin, 0 to 1.
  double Utilisation(std::size_t link, std::size_t bin) const;
  /// Mean over all bins.
  double Utilisation(std::size_t link) const;
  /// The same over the links of all ports, weighted by capacity.
  double PortUtilisation(std::size_t bin) const;

  struct Service {
    std::int64_t first = -1;  ///< Ticks; -1: never served.
    std::int64_t ticks = 0;   ///< Time in which any flow of it moved.
  };
  const Service& service(std::size_t coflow) const { return service_[coflow]; }

 private:
  void Widen();
  double TicksIn(std::size_t bin) const;

  std::uint32_t ports_;
  std::vector<double> capacity_;
  std::size_t bins_max_;
  std::int64_t bin_ = 1024;
  std::int64_t origin_ = -1;
  std::int64_t end_ = 0;
  std::vector<double> bytes_;  // [link * bins_max_ + bin]
  std::vector<Service> service_;
  std::vector<std::int64_t> seen_until_;  // by coflow: end of the last interval counted
};

}  // namespace weir::tools
