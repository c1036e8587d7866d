#include "scheduler/sim/fluid_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "scheduler/compress/levels.h"
#include "scheduler/sim/admission.h"
#include "scheduler/sim/arrivals.h"
#include "scheduler/sim/decisions.h"
#include "scheduler/sim/observer.h"

namespace weir::scheduler {
namespace {

class FluidSim final : private Motion {
 public:
  FluidSim(const traces::Trace& trace, const Fabric& fabric, Order* order, RateAllocator* rate,
           const SimOptions& options)
      : trace_(trace),
        fabric_(fabric),
        order_(*order),
        rate_(*rate),
        options_(options),
        capacity_(fabric.capacity().begin(), fabric.capacity().end()),
        arrivals_(trace, options),
        table_(fabric.links(), fabric.ports()),
        admission_(trace, *order, fabric, options),
        sorted_(rate->sharing() == Sharing::kOrder),
        decisions_(order, options, sorted_),
        watching_(options.observer != nullptr && options.observer->sees_links()),
        asked_(rate->sharing() != Sharing::kAll || order->PilotCount(1) > 0),
        local_of_link_(fabric.links(), UINT32_MAX) {
    outcome_.coflows.resize(trace.coflows.size());
    for (std::uint32_t link = 0; link < fabric.links(); ++link) {
      table_.time_per_byte[link] = 1.0 / capacity_[link];
    }
  }

  Result<SimOutcome> Run() {
    for (std::int64_t next = NextEvent(); next != kNever; next = NextEvent()) {
      if (watching_ && next > now_) {
        ShowInterval(now_, next);
      }
      now_ = next;
      ++outcome_.events;
      const bool ended = EndFlows();
      const bool started = StartCoflows();
      const bool capacity_changed = ChangeCapacities();
      if (first_start_ == kNever && started) {
        first_start_ = now_;
      }
      const bool reported = now_ >= report_due_;
      if (ended || started || capacity_changed || reported || (asked_ && decisions_.Due(now_, false, false))) {
        SetRates(ended || started, reported);
      }
    }
    if (!table_.live().empty()) {
      return Stuck();
    }
    outcome_.makespan = last_end_ - (first_start_ == kNever ? 0 : first_start_);
    decisions_.Report(&outcome_);
    return std::move(outcome_);
  }

 private:
  struct Row {
    std::size_t coflow = 0;
    std::int64_t flows_left = 0;
    std::int64_t largest_ended = 0;
    std::unique_ptr<FlowGroup> main, pilots;  // never null once the slot was used
  };

  std::int64_t NextEvent() {
    std::int64_t next = arrivals_.Next();
    if (table_.live().empty()) {
      return next;
    }
    for (const std::uint32_t slot : table_.live()) {
      next = std::min({next, rows_[slot].main->NextEnd(), rows_[slot].pilots->NextEnd()});
    }
    next = std::min({next, report_due_, asked_ ? decisions_.NextChange(table_, now_, *this) : kNever});
    if (next_change_ < options_.capacity_changes.size()) {
      next = std::min(next, std::max(now_, options_.capacity_changes[next_change_].time));
    }
    return next;
  }

  void ShowInterval(std::int64_t begin, std::int64_t end) {
    uses_.clear();
    for (const std::uint32_t slot : table_.live()) {
      const Row& row = rows_[slot];
      for (FlowGroup* group : {row.main.get(), row.pilots.get()}) {
        group->RefreshSums();
        for (std::size_t i = 0; group->live() > 0 && i < group->links().size(); ++i) {
          if (group->Use(i) > 0) {
            uses_.push_back({row.coflow, group->links()[i], group->Use(i)});
          }
        }
      }
    }
    options_.observer->OnInterval(begin, end, uses_);
  }

  std::int64_t WhenSent(std::uint32_t slot, double bytes) override {
    const Row& row = rows_[slot];
    const double rate = row.main->TotalRate() + row.pilots->TotalRate();
    return rate > 0 ? TimeAfter(now_, (bytes - Sent(row)) / rate) : kNever;
  }

  std::int64_t WhenOneSent(std::uint32_t slot, double bytes) override {
    return std::min(rows_[slot].main->WhenOneSent(bytes), rows_[slot].pilots->WhenOneSent(bytes));
  }

  /// Books the flows that end now; true if a coflow did.
  bool EndFlows() {
    ended_.clear();
    for (const std::uint32_t slot : table_.live()) {
      for (FlowGroup* group : {rows_[slot].main.get(), rows_[slot].pilots.get()}) {
        if (group->live() > 0 && group->NextEnd() <= now_) {
          const std::size_t before = ended_.size();
          group->Settle(now_);
          group->TakeEnded(slot, &ended_);
          if (group == rows_[slot].pilots.get()) {
            BookPilots(std::span(ended_).subspan(before));
          }
        }
      }
    }
    finished_.clear();
    for (const EndedFlow& flow : ended_) {
      BookEnd(flow);
    }
    for (const std::uint32_t slot : finished_) {
      outcome_.coflows[rows_[slot].coflow].end = now_;
      last_end_ = now_;
      decisions_.Ended(table_, slot);
      table_.FreeSlot(slot);
      arrivals_.OnEnd(rows_[slot].coflow, now_);
      if (options_.observer != nullptr) {
        options_.observer->OnEnd(rows_[slot].coflow, now_);
      }
    }
    if (!ended_.empty()) {
      const std::int64_t interval = std::max<std::int64_t>(1, options_.reporting_interval);
      report_due_ = std::min(report_due_, (now_ + interval - 1) / interval * interval);
    }
    return !finished_.empty();
  }

  void BookPilots(std::span<const EndedFlow> pilots) {
    for (const EndedFlow& flow : pilots) {
      --table_.pilots_left[flow.group];
      table_.pilot_squares[flow.group] += static_cast<double>(flow.bytes) * static_cast<double>(flow.bytes);
      for (const std::uint32_t link : {flow.source, fabric_.ports() + flow.destination}) {
        table_.PilotBytes(flow.group)[link] += flow.bytes;
        ++table_.PilotFlows(flow.group)[link];
      }
    }
  }

  void BookEnd(const EndedFlow& flow) {
    const std::size_t row = std::size_t{flow.group} * table_.links();
    const auto book = [&](std::uint32_t link) {
      --table_.flows_left[row + link];
      ++table_.ended_flows[row + link];
      table_.ended_bytes[row + link] += flow.bytes;
    };
    book(flow.source);
    book(fabric_.ports() + flow.destination);
    for (const std::uint32_t link : fabric_.InnerLinks(flow.source, flow.destination)) {
      book(link);
    }
    ++table_.flows_ended[flow.group];
    table_.ended_squares[flow.group] += static_cast<double>(flow.bytes) * static_cast<double>(flow.bytes);
    Row& of = rows_[flow.group];
    of.largest_ended = std::max(of.largest_ended, flow.bytes);
    outcome_.bytes_moved += static_cast<double>(flow.bytes);
    ++outcome_.rate_changes;
    if (--of.flows_left == 0) {
      finished_.push_back(flow.group);
    }
  }

  bool StartCoflows() {
    bool any = false;
    while (arrivals_.Next() <= now_) {
      StartCoflow(arrivals_.Pop());
      any = true;
    }
    outcome_.active_max = std::max<std::uint64_t>(outcome_.active_max, table_.live().size());
    return any;
  }

  void StartCoflow(std::size_t index) {
    const traces::TraceCoflow& coflow = trace_.coflows[index];
    const std::uint32_t slot = admission_.Admit(coflow, now_, &table_);
    if (slot >= rows_.size()) {
      rows_.resize(slot + 1);
      rows_[slot].main = std::make_unique<FlowGroup>();
      rows_[slot].pilots = std::make_unique<FlowGroup>();
    }
    Row& row = rows_[slot];
    row.coflow = index;
    row.flows_left = table_.width[slot];
    row.largest_ended = 0;
    row.pilots->Open(fabric_, admission_.pilots(), now_, &local_of_link_);
    row.main->Open(fabric_, admission_.rest(), now_, &local_of_link_);
    decisions_.Started();
    outcome_.coflows[index] = {.id = coflow.id,
                               .arrival = now_,
                               .end = 0,
                               .isolation = static_cast<std::int64_t>(std::ceil(table_.isolation[slot])),
                               .deadline = coflow.deadline == 0 ? 0 : table_.deadline[slot] - now_,
                               .admitted = false};
    if (options_.observer != nullptr) {
      options_.observer->OnStart(index, now_);
    }
  }

  bool ChangeCapacities() {
    bool any = false;
    for (; next_change_ < options_.capacity_changes.size(); ++next_change_) {
      const CapacityChange& change = options_.capacity_changes[next_change_];
      if (change.time > now_) {
        break;
      }
      capacity_[change.link] = fabric_.capacity()[change.link] * change.share;
      if (watching_) {
        options_.observer->OnCapacity(change.link, capacity_[change.link]);
      }
      any = true;
    }
    return any;
  }

  void SetRates(bool coflows_changed, bool reported) {
    report_due_ = kNever;
    for (const std::uint32_t slot : table_.live()) {
      rows_[slot].main->Settle(now_);
      rows_[slot].pilots->Settle(now_);
    }
    if (asked_) {
      if (decisions_.Due(now_, coflows_changed, reported)) {
        WriteTable();
      }
      decisions_.Decide(table_, now_, coflows_changed, reported);
    }
    Rank();
    outcome_.rate_changes += rate_.Allocate(ranked_, capacity_);
  }

  double Sent(const Row& row) const {
    const double open = row.main->TotalOpen() + row.pilots->TotalOpen();
    return open - (row.main->TotalLeft(now_) + row.pilots->TotalLeft(now_));
  }

  /// Brings the columns of the table that follow from bytes up to the present, those that the order reads. What is on
  /// single links only Sort() reads.
  void WriteTable() {
    for (const std::uint32_t slot : table_.live()) {
      Row& row = rows_[slot];
      if (sorted_ && order_.reads_links()) {
        WriteLinks(slot, row);
      } else {
        table_.bytes_sent[slot] = static_cast<std::int64_t>(std::floor(Sent(row)));
      }
      if (order_.reads_largest_flow() || table_.pilots_left[slot] > 0) {
        row.main->Settle(now_);
        row.pilots->Settle(now_);
        const double largest =
            std::max(order_.reads_largest_flow() ? row.main->LargestSent() : 0, row.pilots->LargestSent());
        table_.largest_seen[slot] = std::max(row.largest_ended, static_cast<std::int64_t>(largest));
      }
    }
  }

  void WriteLinks(std::uint32_t slot, const Row& row) {
    for (FlowGroup* group : {row.main.get(), row.pilots.get()}) {
      group->Settle(now_);
      group->RefreshSums();
      for (const std::uint32_t link : group->links()) {
        table_.Load(slot)[link] = 0;
        table_.Attained(slot)[link] = 0;
      }
    }
    table_.bytes_left[slot] = 0;
    table_.bytes_sent[slot] = 0;
    for (const FlowGroup* group : {row.main.get(), row.pilots.get()}) {
      WriteRow(slot, *group);
    }
  }

  void WriteRow(std::uint32_t slot, const FlowGroup& group) {
    const auto load = table_.Load(slot);
    const auto attained = table_.Attained(slot);
    const auto links = group.links();
    for (std::size_t i = 0; i < links.size(); ++i) {
      const auto open = static_cast<std::int64_t>(group.OpenLoad(i));
      const auto left =
          group.Count(i) == 0 ? 0 : std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(group.Load(i))));
      load[links[i]] += left;
      attained[links[i]] += open - left;
      table_.bytes_left[slot] += fabric_.IsUplink(links[i]) ? left : 0;
      table_.bytes_sent[slot] += fabric_.IsUplink(links[i]) ? open - left : 0;
    }
  }

  /// The groups in the order in force, each with the level and weight that the allocator's way of sharing gives it.
  void Rank() {
    const auto in_order = asked_ ? decisions_.placed() : table_.live();
    served_.assign(in_order.begin(), in_order.end());
    if (sorted_ && options_.levels > 0) {
      levels_.Assign(table_, options_.levels, &served_);
    }
    const Sharing sharing = rate_.sharing();
    if (sharing == Sharing::kQueues || sharing == Sharing::kWeighted) {
      order_.Queues(table_, &queues_);
    }
    ranked_.clear();
    for (const std::uint32_t slot : served_) {
      if (rows_[slot].pilots->live() > 0 && order_.PilotsFirst(table_, slot)) {
        const bool own = sharing == Sharing::kOrder && options_.levels == 0;
        RankGroup(slot, own ? static_cast<std::uint32_t>(ranked_.size()) : 0, rows_[slot].pilots.get());
      }
    }
    const auto base = static_cast<std::uint32_t>(ranked_.size());
    const auto deepest = options_.levels > 0 ? static_cast<std::uint32_t>(options_.levels - 1) : UINT32_MAX;
    for (std::uint32_t rank = 0; rank < served_.size(); ++rank) {
      const std::uint32_t slot = served_[rank];
      std::uint32_t level = base;
      if (sharing == Sharing::kOrder) {
        level += 2 * (options_.levels > 0 ? levels_.levels()[rank] : rank);
      } else if (sharing == Sharing::kQueues) {
        level += 2 * std::min(queues_[slot], deepest);
      }
      if (!order_.PilotsFirst(table_, slot)) {
        RankGroup(slot, level, rows_[slot].pilots.get());
      }
      RankGroup(slot, level + 1, rows_[slot].main.get());
      if (sharing == Sharing::kWeighted && rows_[slot].main->live() > 0) {
        ranked_.back().weight *= static_cast<double>(order_.queue_count() - queues_[slot]);
      }
    }
    std::stable_sort(ranked_.begin(), ranked_.end(),
                     [](const RankedGroup& a, const RankedGroup& b) { return a.level < b.level; });
  }

  void RankGroup(std::uint32_t slot, std::uint32_t level, FlowGroup* group) {
    if (group->live() > 0) {
      ranked_.push_back({group, table_.weight[slot], level, order_.needs_sizes()});
    }
  }

  /// Nothing will ever happen again, but coflows wait: says for which link.
  Result<SimOutcome> Stuck() const {
    for (const std::uint32_t slot : table_.live()) {
      for (const FlowGroup* group : {rows_[slot].main.get(), rows_[slot].pilots.get()}) {
        for (std::size_t i = 0; i < group->links().size(); ++i) {
          if (group->Count(i) > 0 && capacity_[group->links()[i]] <= 0) {
            return Error(StatusCode::kInvalidArgument,
                         fmt::format("coflow {} can never end: {} has no capacity; give it some again later",
                                     table_.id[slot], LinkName(group->links()[i])));
          }
        }
      }
    }
    return Error(StatusCode::kInternal, "coflows wait although every link has capacity");
  }

  std::string LinkName(std::uint32_t link) const {
    return link < options_.link_names.size() ? options_.link_names[link] : fmt::format("link {}", link);
  }

  const traces::Trace& trace_;
  const Fabric& fabric_;
  Order& order_;
  RateAllocator& rate_;
  SimOptions options_;
  std::vector<double> capacity_;  // now
  Arrivals arrivals_;
  ActiveTable table_;
  Admission admission_;
  bool sorted_;  // who goes first matters
  Decisions decisions_;
  LevelMap levels_;
  bool watching_;
  bool asked_;  // the order says something: who goes first, which queue, or which flows are pilots
  SimOutcome outcome_;
  std::int64_t now_ = 0;
  std::int64_t first_start_ = kNever;
  std::int64_t last_end_ = 0;
  std::int64_t report_due_ = kNever;  // when flow ends that nobody has heard of are reported
  std::size_t next_change_ = 0;       // in options_.capacity_changes

  std::vector<Row> rows_;  // by slot
  std::vector<std::uint32_t> queues_;
  std::vector<EndedFlow> ended_;
  std::vector<std::uint32_t> finished_, served_;
  std::vector<RankedGroup> ranked_;
  std::vector<LinkUse> uses_;                 // scratch of ShowInterval()
  std::vector<std::uint32_t> local_of_link_;  // scratch of FlowGroup::Open()
};

}  // namespace

Result<SimOutcome> RunFluid(const traces::Trace& trace, const Fabric& fabric, Order* order, RateAllocator* rate,
                            const SimOptions& options) {
  return FluidSim(trace, fabric, order, rate, options).Run();
}

}  // namespace weir::scheduler
