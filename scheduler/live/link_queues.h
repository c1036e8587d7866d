#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/live/chunk_pool.h"
#include "scheduler/live/fabric.h"
#include "scheduler/live/ranked_order.h"

namespace weir::scheduler {

/// Each link's flows in the order of their coflows; which coflows use the link now, and how much; and from where in
/// the order on nobody can, because those in front have all of it. A contended link has many flows and few users, which
/// is why they are kept apart.
///
/// Cost: a search in a link's queue is O(log n), an insertion one move of memory; users are searched one by one.
/// Thread: one at a time.
class LinkQueues {
 public:
  struct Entry {
    CoflowSlot slot = 0;
    FlowIndex flow = 0;
  };
  struct User {
    CoflowSlot slot = 0;
    WholeRate rate = 0;  ///< >= 0; 0: it would take more, but its shares were rounded to nothing.
  };
  static constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

  /// Both must outlive this.
  LinkQueues(const LiveFabric& fabric, const RankedOrder& order);

  void Insert(CoflowSlot slot);  ///< All its flows, behind those in front of it and before those behind.
  void Append(CoflowSlot slot);  ///< The same for who is behind everybody.
  void Erase(CoflowSlot slot);   ///< The flows; not what it uses.
  void EraseFlow(FlowIndex flow);
  /// Moves the flows of a coflow on one link to where the new label belongs; it still has the old one. False if they
  /// are there already.
  bool Carry(LinkIndex link, CoflowSlot slot, std::size_t flows, std::uint64_t label);
  void Clear();  ///< Flows and users of all links.

  std::span<const Entry> Entries(LinkIndex link) const { return entries_.Of(queue_[link]); }
  std::span<const User> Users(LinkIndex link) const { return users_.Of(users_of_[link]); }
  std::uint64_t LabelOf(CoflowSlot slot) const { return order_.label(slot); }
  /// Index of the first entry behind the label.
  std::size_t Behind(LinkIndex link, std::uint64_t label) const;
  /// What those in front of the label use together.
  WholeRate UsedBefore(LinkIndex link, std::uint64_t label) const;
  /// None if it is no user.
  std::optional<WholeRate> UseOf(LinkIndex link, CoflowSlot slot) const;
  /// The first user behind the label, or null; valid until the link's users change.
  const User* NextUser(LinkIndex link, std::uint64_t label) const;
  void SetUse(LinkIndex link, CoflowSlot slot, std::optional<WholeRate> rate);
  void AppendUse(LinkIndex link, CoflowSlot slot, WholeRate rate);

  /// Label of the coflow whose use leaves nothing of the link; 0 if there is nothing from the start, kNowhere if
  /// something stays. Who has a larger label gets nothing here.
  std::uint64_t full_from(LinkIndex link) const { return full_from_[link]; }
  void SetFullFrom(LinkIndex link, std::uint64_t label) { full_from_[link] = label; }
  /// Finds it from the users.
  void FindFullFrom(LinkIndex link);

 private:
  const LiveFabric& fabric_;
  const RankedOrder& order_;
  std::vector<Chunk> queue_;     ///< By link, in `entries_`.
  std::vector<Chunk> users_of_;  ///< By link, in `users_`.
  std::vector<std::uint64_t> full_from_;
  ChunkPool<Entry> entries_;
  ChunkPool<User> users_;
};

}  // namespace weir::scheduler
