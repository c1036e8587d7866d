#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "scheduler/order/active_table.h"

namespace weir::scheduler {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// What may change an order.
enum class Refresh {
  kArrivals,  ///< Not even with departures: whoever is left keeps its place.
  kCoflows,   ///< Arrivals and departures.
  kFlowEnds,  ///< Also when flows end.
};

/// How coflows move on, as long as rates hold.
class Motion {
 public:
  virtual ~Motion() = default;
  /// The first time, later than now, at which the live coflow in `slot` will have sent `bytes` or more; kNever: it
  /// won't.
  virtual std::int64_t WhenSent(std::uint32_t slot, double bytes) = 0;
  /// The same of one of its flows, whichever. May be late by a thousandth of the time that `bytes` take.
  virtual std::int64_t WhenOneSent(std::uint32_t slot, double bytes) = 0;
};

/// Who goes first. Pure: reads the table and the time, nothing else; the same inputs give the same order. An
/// implementation may keep scratch memory, so one object serves one thread.
class Order {
 public:
  virtual ~Order() = default;

  /// Fills `order` with the live slots, most urgent first. Ties: earlier arrival, then lower id.
  virtual void Sort(const ActiveTable& table, std::int64_t now, std::vector<std::uint32_t>* order) = 0;

  /// The coflow in `slot` has ended: its row is read for the last time. All its flows are in the ended columns.
  virtual void Ended(const ActiveTable& /*table*/, std::uint32_t /*slot*/) {}

  virtual Refresh refresh() const { return Refresh::kCoflows; }
  /// True if the order never reads the columns that need known sizes.
  virtual bool needs_sizes() const { return true; }
  /// The earliest time at which the order may change by progress alone. kNever: not before the next event. The table
  /// may be as it was when this was asked last, or when Sort() was.
  virtual std::int64_t NextChange(const ActiveTable& /*table*/, std::int64_t /*now*/, Motion& /*motion*/) const {
    return kNever;
  }
  /// Whether the live coflow in `slot` was promised to end by its deadline.
  virtual bool Admitted(std::uint32_t /*slot*/) const { return false; }
  /// True if Sort() reads what a coflow has left or has sent on single links (ActiveTable::load, attained), or
  /// bytes_left.
  virtual bool reads_links() const { return true; }
  /// True if ActiveTable::largest_seen must be of all flows, which costs a simulator a look at every one. Otherwise it
  /// may be of the pilots and of the flows that have ended.
  virtual bool reads_largest_flow() const { return false; }
  /// The queue each live slot is in, for rates that depend on it; 0 everywhere when the order has no queues.
  virtual void Queues(const ActiveTable& table, std::vector<std::uint32_t>* queue) const {
    queue->assign(table.id.size(), 0);
  }
  virtual std::int64_t queue_count() const { return 1; }
  /// How many random flows of a coflow of `width` flows must run first to learn its size; 0: none.
  virtual std::int64_t PilotCount(std::int64_t /*width*/) const { return 0; }
  /// Whether those flows go before all other coflows, or with their own coflow, before its other flows.
  virtual bool PilotsFirst(const ActiveTable& /*table*/, std::uint32_t /*slot*/) const { return true; }
};

/// Which flows that ended `pilots` learns sizes from.
enum class SampledFlows {
  kByRate,  ///< As the rate demands: a policy is read (ParsePolicy) to one of the others.
  kEnded,   ///< All: right where ports serve one flow at a time, so that any may be the first to end.
  kPilots,  ///< The pilots alone: right where flows share links and end shortest first.
};

/// What an order can be asked to be; each order reads the fields that concern it.
struct OrderOptions {
  std::string name = "sebf";
  double factor = 10.0;                   ///< Growth of the queue limits (E of D-CLAS).
  std::int64_t first_limit = 10'485'760;  ///< Bytes; the first queue's limit, and of pilots that go before all.
  std::int64_t queues = 10;               ///< Number of queues (K).
  std::int64_t pilots_min = 20;           ///< At least so many pilot flows.
  bool history = true;                    ///< Of `pilots`: learn from earlier coflows of a job.
  double pilot_share = -1;                ///< And this share of a coflow's flows; < 0: as `sample` needs.
  SampledFlows sample = SampledFlows::kByRate;
  double shrink = -1;      ///< How many flows' worth the coflow's mean weighs against a receiver's own; < 0: measured.
  double age_bound = 0;    ///< Coflows older than this x their isolation go first; 0: no such bound.
  bool admission = false;  ///< Of `edf`: deadlines are promised to admitted coflows only, and kept.
  std::int64_t megabyte = 1'048'576;  ///< Assumed size of a flow nobody has seen anything of.
};

/// One line of `weir-sim policies`.
struct OrderInfo {
  std::string_view name;
  std::string_view what;
  std::string_view paper;
};

std::span<const OrderInfo> Orders();
/// NotFound with the list of names when there is no such order.
Result<std::unique_ptr<Order>> MakeOrder(const OrderOptions& options);

/// Sorts the live slots by `key[slot]`, smallest first; ties by arrival, then id.
void SortByKey(const ActiveTable& table, const std::vector<double>& key, std::vector<std::uint32_t>* order);

/// `order` with a bound on waiting: a coflow that is older than `beta` times its time on an empty fabric is due, and
/// those that are due go before all others, the one that has been due longest first. Needs known sizes.
///
/// The bound, on a fabric whose ports serve one flow at a time and never idle while a pair could be served (Matcher):
/// let D be the time at which c is due, and S the coflows that were due before c and have not ended at D. Nothing that
/// is not in S goes before c after D. A flow of c from s to d waits only while s or d serves S or c, so c ends by
/// D + the most, over its flows, of what S and c have left at s and at d together. That is at most
/// D + 2 x the largest load of a port by S and c, whatever arrives later.
std::unique_ptr<Order> MakeAgeBound(std::unique_ptr<Order> order, double beta);

// Makers of each family, for the registry.
std::unique_ptr<Order> MakeKnownSizeOrder(const OrderOptions& options);  ///< Null: not of this family.
std::unique_ptr<Order> MakeDeadlineOrder(const OrderOptions& options);
std::unique_ptr<Order> MakePrimalDualOrder(const OrderOptions& options);
std::unique_ptr<Order> MakeLocalSearchOrder(const OrderOptions& options);
std::unique_ptr<Order> MakeAttainedOrder(const OrderOptions& options);
std::unique_ptr<Order> MakePilotOrder(const OrderOptions& options);

}  // namespace weir::scheduler
