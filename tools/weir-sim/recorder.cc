#include "tools/weir-sim/recorder.h"

#include <algorithm>

namespace weir::tools {
namespace {

constexpr std::size_t kBinsMost = 256;
constexpr std::size_t kBinsLeast = 16;
constexpr std::size_t kCells = std::size_t{1} << 20;  ///< Links x bins: 8 MiB.

}  // namespace

RunRecorder::RunRecorder(std::size_t coflows, const scheduler::Fabric& fabric)
    : ports_(fabric.ports()),
      capacity_(fabric.capacity().begin(), fabric.capacity().end()),
      bins_max_(std::clamp(kCells / capacity_.size() / 2 * 2, kBinsLeast, kBinsMost)),
      bytes_(capacity_.size() * bins_max_, 0.0),
      service_(coflows),
      seen_until_(coflows, -1) {}

void RunRecorder::OnStart(std::size_t /*coflow*/, std::int64_t now) {
  origin_ = origin_ < 0 ? now : origin_;
}

void RunRecorder::OnEnd(std::size_t /*coflow*/, std::int64_t now) {
  end_ = now;
}

void RunRecorder::OnInterval(std::int64_t begin, std::int64_t end, std::span<const scheduler::LinkUse> uses) {
  if (uses.empty()) {
    return;
  }
  while (end - origin_ > bin_ * static_cast<std::int64_t>(bins_max_)) {
    Widen();
  }
  const auto first = static_cast<std::size_t>((begin - origin_) / bin_);
  const auto last = static_cast<std::size_t>((end - origin_ - 1) / bin_);
  for (std::size_t bin = first; bin <= last; ++bin) {
    const std::int64_t from = origin_ + static_cast<std::int64_t>(bin) * bin_;
    const auto ticks = static_cast<double>(std::min(end, from + bin_) - std::max(begin, from));
    for (const scheduler::LinkUse& use : uses) {
      bytes_[use.link * bins_max_ + bin] += use.rate * ticks;
    }
  }
  for (const scheduler::LinkUse& use : uses) {
    if (seen_until_[use.coflow] == end) {
      continue;
    }
    seen_until_[use.coflow] = end;
    Service& service = service_[use.coflow];
    service.first = service.first < 0 ? begin : service.first;
    service.ticks += end - begin;
  }
}

void RunRecorder::Widen() {
  for (std::size_t link = 0; link < capacity_.size(); ++link) {
    double* of_link = &bytes_[link * bins_max_];
    for (std::size_t bin = 0; bin < bins_max_ / 2; ++bin) {
      of_link[bin] = of_link[2 * bin] + of_link[2 * bin + 1];
    }
    std::fill(of_link + bins_max_ / 2, of_link + bins_max_, 0.0);
  }
  bin_ *= 2;
}

std::size_t RunRecorder::bins() const {
  return origin_ < 0 ? 0 : static_cast<std::size_t>((end_ - origin_ + bin_ - 1) / bin_);
}

double RunRecorder::TicksIn(std::size_t bin) const {
  const std::int64_t from = origin_ + static_cast<std::int64_t>(bin) * bin_;
  return static_cast<double>(std::min(end_, from + bin_) - from);
}

double RunRecorder::Utilisation(std::size_t link, std::size_t bin) const {
  return capacity_[link] > 0 ? std::min(1.0, bytes_[link * bins_max_ + bin] / (capacity_[link] * TicksIn(bin))) : 0;
}

double RunRecorder::Utilisation(std::size_t link) const {
  double bytes = 0;
  for (std::size_t bin = 0; bin < bins(); ++bin) {
    bytes += bytes_[link * bins_max_ + bin];
  }
  const double room = capacity_[link] * static_cast<double>(end_ - origin_);
  return room > 0 ? std::min(1.0, bytes / room) : 0;
}

double RunRecorder::PortUtilisation(std::size_t bin) const {
  double bytes = 0;
  double capacity = 0;
  for (std::size_t link = 0; link < 2 * std::size_t{ports_}; ++link) {
    bytes += bytes_[link * bins_max_ + bin];
    capacity += capacity_[link];
  }
  return capacity > 0 ? std::min(1.0, bytes / (capacity * TicksIn(bin))) : 0;
}

}  // namespace weir::tools
