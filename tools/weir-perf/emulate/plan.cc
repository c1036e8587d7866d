#include "tools/weir-perf/emulate/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace weir::tools::emulate {
namespace {

struct Known {
  Collective collective;
  std::string_view name;
};
constexpr std::array<Known, 7> kKnown = {{{Collective::kRingAllReduce, "all-reduce"},
                                          {Collective::kTreeAllReduce, "tree-all-reduce"},
                                          {Collective::kAllGather, "all-gather"},
                                          {Collective::kReduceScatter, "reduce-scatter"},
                                          {Collective::kBroadcast, "broadcast"},
                                          {Collective::kAllToAll, "all-to-all"},
                                          {Collective::kSendReceive, "send-receive"}}};

/// A part of the buffer.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t count() const { return end - begin; }
};

Range Part(Range whole, std::size_t index, std::size_t parts) {
  const std::size_t size = (whole.count() + parts - 1) / parts;
  return {std::min(whole.begin + index * size, whole.end), std::min(whole.begin + (index + 1) * size, whole.end)};
}

class Planner {
 public:
  Planner(const Shape& shape, int rank, int channel)
      : shape_(shape),
        ranks_(static_cast<std::size_t>(shape.ranks)),
        rank_(static_cast<std::size_t>(rank)),
        next_((rank + 1) % shape.ranks),
        previous_((rank + shape.ranks - 1) % shape.ranks),
        range_(Part({0, shape.count}, static_cast<std::size_t>(channel), static_cast<std::size_t>(shape.channels))) {}

  std::vector<Instruction> Make() {
    switch (shape_.collective) {
      case Collective::kRingAllReduce:
        RingAllReduce();
        break;
      case Collective::kTreeAllReduce:
        TreeAllReduce();
        break;
      case Collective::kAllGather:
        Blocks([this](Range piece) { Gather(piece); });
        break;
      case Collective::kReduceScatter:
        Blocks([this](Range piece) { Scatter(piece); });
        break;
      case Collective::kBroadcast:
        Blocks([this](Range piece) {
          Add(rank_ == 0 ? kNobody : previous_, next_ == 0 ? kNobody : next_, false, piece, 0, 0);
        });
        break;
      case Collective::kAllToAll:
        AllToAll();
        break;
      case Collective::kSendReceive:
        Blocks([this](Range piece) {
          if (next_ != 0) Add(kNobody, next_, false, piece, 0, 0);
          if (rank_ != 0) Add(previous_, kNobody, false, piece, shape_.count, 0);
        });
        break;
    }
    return std::move(plan_);
  }

 private:
  void Add(int from, int to, bool add, Range piece, std::size_t take_base, std::size_t send_base) {
    plan_.push_back({from, to, add, take_base + piece.begin, send_base + piece.begin, piece.count()});
  }

  /// One piece after the other; at least one, as NCCL sends something even where there is nothing.
  template <typename Each>
  void Blocks(Each&& each) {
    std::size_t at = range_.begin;
    do {
      const Range piece{at, std::min(at + shape_.slice_count, range_.end)};
      each(piece);
      at = piece.end;
    } while (at < range_.end);
  }

  std::size_t Behind(std::size_t steps) const { return (rank_ + ranks_ - steps) % ranks_; }

  /// Each round is of one piece a rank: summed on the way round, then passed round once more.
  void RingAllReduce() {
    const std::size_t round = shape_.slice_count * ranks_;
    std::size_t at = range_.begin;
    do {
      const Range whole{at, std::min(at + round, range_.end)};
      const auto chunk = [&](std::size_t behind) { return Part(whole, Behind(behind), ranks_); };
      Add(kNobody, next_, false, chunk(1), 0, 0);
      for (std::size_t j = 2; j < ranks_; ++j) Add(previous_, next_, true, chunk(j), 0, 0);
      Add(previous_, next_, true, chunk(0), 0, 0);
      for (std::size_t j = 1; j + 1 < ranks_; ++j) Add(previous_, next_, false, chunk(j), 0, 0);
      Add(previous_, kNobody, false, chunk(ranks_ - 1), 0, 0);
      at = whole.end;
    } while (at < range_.end);
  }

  void TreeAllReduce() {
    const int rank = static_cast<int>(rank_);
    const int parent = rank == 0 ? kNobody : (rank - 1) / 2;
    std::vector<int> children;
    for (const int child : {2 * rank + 1, 2 * rank + 2}) {
      if (child < shape_.ranks) children.push_back(child);
    }
    Blocks([&](Range piece) {
      for (const int child : children) Add(child, kNobody, true, piece, 0, 0);
      if (parent != kNobody) Add(kNobody, parent, false, piece, 0, 0);
    });
    Blocks([&](Range piece) {
      if (parent != kNobody) Add(parent, kNobody, false, piece, 0, 0);
      for (const int child : children) Add(kNobody, child, false, piece, 0, 0);
    });
  }

  void Gather(Range piece) {
    const auto base = [&](std::size_t behind) { return Behind(behind) * shape_.count; };
    Add(kNobody, next_, false, piece, 0, base(0));
    for (std::size_t j = 1; j + 1 < ranks_; ++j) Add(previous_, next_, false, piece, base(j), base(j));
    Add(previous_, kNobody, false, piece, base(ranks_ - 1), 0);
  }

  void Scatter(Range piece) {
    const auto base = [&](std::size_t behind) { return Behind(behind) * shape_.count; };
    Add(kNobody, next_, false, piece, 0, base(1));
    for (std::size_t j = 2; j < ranks_; ++j) Add(previous_, next_, true, piece, base(j), base(j));
    Add(previous_, kNobody, true, piece, base(0), 0);
  }

  /// The first half of the buffer goes out, the second comes in. What is received together is sent together: a group
  /// is done when all of it is there, so nobody may wait for a part of one.
  void AllToAll() {
    for (std::size_t away = 1; away < ranks_; ++away) {
      const std::size_t to = (rank_ + away) % ranks_;
      const std::size_t from = Behind(away);
      std::vector<Range> group;
      const auto flush = [&] {
        for (const Range& piece : group) Add(kNobody, static_cast<int>(to), false, piece, 0, to * shape_.count);
        for (const Range& piece : group) {
          Add(static_cast<int>(from), kNobody, false, piece, (ranks_ + from) * shape_.count, 0);
        }
        group.clear();
      };
      Blocks([&](Range piece) {
        group.push_back(piece);
        if (group.size() == shape_.group) flush();
      });
      flush();
    }
  }

  const Shape& shape_;
  const std::size_t ranks_;
  const std::size_t rank_;
  const int next_;
  const int previous_;
  const Range range_;
  std::vector<Instruction> plan_;
};

/// What `rank` brings in at a place: depends on every bit of it, and sums over ranks are easily known.
std::uint32_t Value(std::size_t place, std::uint32_t seed, std::size_t rank) {
  auto mixed = static_cast<std::uint32_t>(place) * 2654435761u ^ seed * 40503u;
  mixed ^= mixed >> 15;
  mixed *= 2246822519u;
  mixed ^= mixed >> 13;
  return mixed * static_cast<std::uint32_t>(2 * rank + 1);
}

/// What must be in a place of the buffer at the end; nothing where it may be anything.
std::optional<std::uint32_t> Expected(const Shape& shape, std::size_t rank, std::uint32_t seed, std::size_t place) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  const std::size_t block = shape.count == 0 ? 0 : place / shape.count;
  std::uint32_t sum = Value(place, seed, 0) * static_cast<std::uint32_t>(ranks * ranks);
  switch (shape.collective) {
    case Collective::kRingAllReduce:
    case Collective::kTreeAllReduce:
      return sum;
    case Collective::kReduceScatter:
      if (block != rank) return std::nullopt;
      return sum;
    case Collective::kAllGather:
      return Value(place, seed, block);
    case Collective::kBroadcast:
      return Value(place, seed, 0);
    case Collective::kAllToAll: {
      if (block < ranks || block == ranks + rank) return std::nullopt;
      return Value(rank * shape.count + place % shape.count, seed, block - ranks);
    }
    case Collective::kSendReceive:
      if (block == 0 || rank == 0) return std::nullopt;
      return Value(place - shape.count, seed, rank - 1);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Instruction> MakePlan(const Shape& shape, int rank, int channel) {
  return Planner(shape, rank, channel).Make();
}

std::size_t BufferCount(const Shape& shape) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  switch (shape.collective) {
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return shape.count * ranks;
    case Collective::kAllToAll:
      return 2 * shape.count * ranks;
    case Collective::kSendReceive:
      return 2 * shape.count;
    case Collective::kRingAllReduce:
    case Collective::kTreeAllReduce:
    case Collective::kBroadcast:
      break;
  }
  return shape.count;
}

void FillInput(const Shape& shape, int rank, std::uint32_t seed, std::span<std::uint32_t> buffer) {
  const auto own = static_cast<std::size_t>(rank);
  for (std::size_t place = 0; place < buffer.size(); ++place) {
    // Of all-gather, only the rank's own block is there at first.
    const bool there = shape.collective != Collective::kAllGather || place / shape.count == own;
    buffer[place] = there ? Value(place, seed, own) : 0;
  }
}

Result<std::size_t> CheckOutput(const Shape& shape, int rank, std::uint32_t seed,
                                std::span<const std::uint32_t> buffer) {
  std::size_t compared = 0;
  for (std::size_t place = 0; place < buffer.size(); ++place) {
    const auto expected = Expected(shape, static_cast<std::size_t>(rank), seed, place);
    if (!expected) continue;
    ++compared;
    if (buffer[place] != *expected) {
      return Error(StatusCode::kInternal,
                   fmt::format("{}: rank {} has {:#x} at place {} of {}, and {:#x} would be right",
                               CollectiveName(shape.collective), rank, buffer[place], place, buffer.size(), *expected));
    }
  }
  return compared;
}

std::string_view CollectiveName(Collective collective) {
  const auto found =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& one) { return one.collective == collective; });
  return found->name;
}

Result<std::vector<Collective>> ParseCollectives(std::string_view text) {
  std::vector<Collective> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t before = found.size();
    for (const Known& one : kKnown) {
      if (name == one.name || name == "all") found.push_back(one.collective);
    }
    if (found.size() > before) continue;
    std::string allowed = "all";
    for (const Known& one : kKnown) allowed += fmt::format(", {}", one.name);
    return Error(StatusCode::kInvalidArgument, fmt::format("found \"{}\", allowed: {}", name, allowed));
  }
  if (found.empty()) return Error(StatusCode::kInvalidArgument, "names none");
  return found;
}

}  // namespace weir::tools::emulate
