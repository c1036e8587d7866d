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

/// Each link's flows by their coflows' place in the order; which coflows use the link now, and how much; and from where
/// in the order on nobody can, because those in front have all of it. A contended link has many flows and few users,
/// which is why they are kept apart.
///
/// Of the flows only a *head* is kept in order, those up to some label; the rest lie behind it in no order. Who waits
/// far behind those that are served can so change places without a touch, and nearly all who wait do. When somebody
/// reads on, the next ones are selected from the rest.
///
///   link:   a a b c c d | h f k g i ...     head_to: label of d or beyond it, in front of f
///
/// Cost: a search in a head is O(log n), an insertion there one move of memory, behind it O(1); taking from the rest is
/// a pass over it, and so is Extend, which takes a share of all. Users are summed one by one. Thread: one at a time.
class LinkQueues {
 public:
  struct Entry {
    CoflowSlot slot = 0;
    FlowIndex flow = 0;
    LinkIndex other = 0;    ///< Of the flow's path, at its other end: tells mostly that the flow cannot run.
    std::uint32_t row = 0;  ///< Of the coflow, for this link.
  };
  static_assert(sizeof(Entry) == 16);
  struct User {
    CoflowSlot slot = 0;
    WholeRate rate = 0;  ///< >= 0; 0: it would take more, but its shares were rounded to nothing.
  };
  static constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

  /// Both must outlive this.
  LinkQueues(const LiveFabric& fabric, const RankedOrder& order);

  void Insert(CoflowSlot slot);  ///< All its flows.
  void Append(CoflowSlot slot);  ///< The same for who is behind everybody, on links whose flows are all in order.
  void Erase(CoflowSlot slot);   ///< The flows; not what it uses.
  void EraseFlow(FlowIndex flow);
  /// Puts the flows of a coflow on one link to where the new label belongs; it still has the old one. `alone`: there is
  /// nobody in between, which saves a search.
  void Carry(LinkIndex link, CoflowSlot slot, std::size_t flows, std::uint64_t label, bool alone);
  void Clear();     ///< Flows and users of all links.
  void CutHeads();  ///< After Append: keeps of each link no longer a head than pays.
  /// The order is the same, the labels are new.
  void AfterRelabel(LinkIndex link);

  /// All flows, the head first.
  std::span<const Entry> Entries(LinkIndex link) const { return entries_.Of(queue_[link]); }
  /// Those in order.
  std::span<const Entry> Head(LinkIndex link) const { return Entries(link).first(head_[link]); }
  /// Makes the head longer; false if it has all.
  bool Extend(LinkIndex link);
  std::span<const User> Users(LinkIndex link) const { return users_.Of(users_of_[link]); }
  std::uint64_t LabelOf(CoflowSlot slot) const { return order_.label(slot); }
  /// Index of the first entry of the head behind the label.
  std::size_t Behind(LinkIndex link, std::uint64_t label) const;
  /// What those in front of the label use together.
  WholeRate UsedBefore(LinkIndex link, std::uint64_t label) const;
  /// None if it is no user.
  std::optional<WholeRate> UseOf(LinkIndex link, CoflowSlot slot) const;
  /// The first user behind the label, or null; valid until the link's users change.
  const User* NextUser(LinkIndex link, std::uint64_t label) const;
  /// Whether somebody but the coflow uses the link with a label from `front` to `back`.
  bool IsUsedBetween(LinkIndex link, CoflowSlot slot, std::uint64_t front, std::uint64_t back) const;
  void SetUse(LinkIndex link, CoflowSlot slot, std::optional<WholeRate> rate);
  void AppendUse(LinkIndex link, CoflowSlot slot, WholeRate rate);

  /// Label of the coflow whose use leaves nothing of the link; 0 if there is nothing from the start, kNowhere if
  /// something stays. Who has a larger label gets nothing here.
  std::uint64_t full_from(LinkIndex link) const { return full_from_[link]; }
  void SetFullFrom(LinkIndex link, std::uint64_t label) { full_from_[link] = label; }
  /// Finds it from the users.
  void FindFullFrom(LinkIndex link);

 private:
  using Index = std::ptrdiff_t;

  std::span<Entry> All(LinkIndex link) { return entries_.Of(queue_[link]); }
  bool IsInHead(LinkIndex link, std::uint64_t label) const { return label <= head_to_[link]; }
  static Entry EntryOf(CoflowSlot slot, FlowIndex flow, std::span<const LiveFabric::Hop> path, std::size_t hop);
  void Put(LinkIndex link, std::uint64_t label, const Entry& entry);
  void PutIntoHead(LinkIndex link, std::uint64_t label, const Entry& entry);
  void TakeFromHead(LinkIndex link, std::size_t at, std::size_t count);
  void TakeFromRest(LinkIndex link, CoflowSlot slot, std::size_t count);
  void CarryWithinHead(LinkIndex link, std::size_t begin, std::size_t end, std::uint64_t label);
  void CarryOutOfHead(LinkIndex link, std::size_t begin, std::size_t end);
  void CarryIntoHead(LinkIndex link, CoflowSlot slot, std::size_t flows, std::uint64_t label);
  void CutHead(LinkIndex link, std::size_t longest);
  std::size_t UserFrom(LinkIndex link, std::uint64_t label) const;
  std::size_t Target(LinkIndex link) const;

  const LiveFabric& fabric_;
  const RankedOrder& order_;
  std::vector<Chunk> queue_;            ///< By link, in `entries_`.
  std::vector<std::uint32_t> head_;     ///< By link: entries in order.
  std::vector<std::uint64_t> head_to_;  ///< By link: the head has all up to this label, and nobody behind it.
  std::vector<Chunk> users_of_;         ///< By link, in `users_`.
  std::vector<std::uint64_t> full_from_;
  ChunkPool<Entry> entries_;
  ChunkPool<User> users_;
};

}  // namespace weir::scheduler
