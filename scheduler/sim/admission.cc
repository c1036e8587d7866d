#include "scheduler/sim/admission.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

/// A number of the job and the ports between which it sends (FNV-1a, 64 bits); never 0.
std::uint64_t Kin(std::uint64_t job, std::span<const MatchFlow> flows) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ULL; };
  add(job);
  for (const MatchFlow& flow : flows) {
    add(flow.source);
    add(flow.destination);
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace

Admission::Admission(const traces::Trace& trace, const Order& order, const Fabric& fabric, const SimOptions& options)
    : order_(order), fabric_(fabric), scale_(options.scale), merger_(trace.ports), random_(options.seed) {}

std::uint32_t Admission::Admit(const traces::TraceCoflow& coflow, std::int64_t now, ActiveTable* table) {
  merger_.Merge(coflow.flows, &flows_);
  const std::uint32_t slot = table->AddSlot();
  FillRow(coflow, now, slot, table);
  table->pilots_left[slot] = order_.PilotCount(table->width[slot]);
  SplitPilots(table->pilots_left[slot]);
  return slot;
}

void Admission::FillRow(const traces::TraceCoflow& coflow, std::int64_t now, std::uint32_t slot,
                        ActiveTable* table) const {
  table->id[slot] = coflow.id;
  table->kin[slot] = coflow.job == 0 ? 0 : Kin(coflow.job, flows_);
  table->arrival[slot] = now;
  table->deadline[slot] = coflow.deadline == 0 ? kNever : now + TicksOf(coflow.deadline, scale_);
  table->weight[slot] = coflow.weight;
  table->width[slot] = static_cast<std::int64_t>(flows_.size());
  table->narrow_side[slot] = std::min(coflow.mappers, coflow.reducers);
  table->wide_side[slot] = std::max(coflow.mappers, coflow.reducers);
  const auto load = table->Load(slot);
  const auto flows_left = table->FlowsLeft(slot);
  for (const MatchFlow& flow : flows_) {
    table->bytes_left[slot] += flow.bytes;
    table->longest_flow[slot] = std::max(table->longest_flow[slot], flow.bytes);
    const auto add = [&](std::uint32_t link) {
      load[link] += flow.bytes;
      ++flows_left[link];
    };
    add(flow.source);
    add(fabric_.ports() + flow.destination);
    for (const std::uint32_t link : fabric_.InnerLinks(flow.source, flow.destination)) {
      add(link);
    }
  }
  std::ranges::copy(flows_left, table->FlowsAtArrival(slot).begin());
  double isolation = 0;
  for (std::size_t link = 0; link < load.size(); ++link) {
    if (load[link] > 0) {
      isolation = std::max(isolation, static_cast<double>(load[link]) * table->time_per_byte[link]);
    }
  }
  table->isolation[slot] = isolation;
}

/// A random choice of the coflow's flows, each as likely as any other.
void Admission::SplitPilots(std::int64_t count) {
  pilots_.clear();
  rest_.clear();
  if (count == 0) {
    rest_.swap(flows_);
    return;
  }
  auto wanted = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const bool pilot = random_() % (flows_.size() - i) < wanted;
    wanted -= pilot ? 1 : 0;
    (pilot ? pilots_ : rest_).push_back(flows_[i]);
  }
}

}  // namespace weir::scheduler
