#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"

/// What a collective does on one channel of one rank, step by step: the part of NCCL's kernels that this program plays.
/// Pure. All works in place on one buffer of 32-bit numbers, which are added with wrap-around.
namespace weir::tools::emulate {

enum class Collective : std::uint8_t {
  kRingAllReduce,
  kTreeAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSendReceive,  ///< A pipeline: each rank to the next.
};

inline constexpr int kNobody = -1;

/// One piece: taken in from a peer, or sent to one, or both, in this order.
struct Instruction {
  int from = kNobody;
  int to = kNobody;
  bool add = false;         ///< What comes is added to what is there, else it takes its place.
  std::size_t take_at = 0;  ///< In the buffer, in numbers.
  std::size_t send_at = 0;
  std::size_t count = 0;  ///< Numbers; may be 0.
};

struct Shape {
  Collective collective = Collective::kRingAllReduce;
  int ranks = 2;
  int channels = 1;
  std::size_t count = 0;        ///< Numbers that each rank brings in; of kAllToAll: for each rank.
  std::size_t slice_count = 0;  ///< Numbers of a piece, at most.
  std::size_t group = 1;        ///< Pieces that are received together; of kAllToAll and kSendReceive only.
};

/// The whole program of one channel of one rank.
std::vector<Instruction> MakePlan(const Shape& shape, int rank, int channel);
/// Numbers of the buffer that it works on.
std::size_t BufferCount(const Shape& shape);

/// Fills the buffer with what `rank` brings in; `seed` differs from one collective to the next.
void FillInput(const Shape& shape, int rank, std::uint32_t seed, std::span<std::uint32_t> buffer);
/// Compares each number of the result. Error kInternal with the first that is wrong. Returns how many were compared.
Result<std::size_t> CheckOutput(const Shape& shape, int rank, std::uint32_t seed,
                                std::span<const std::uint32_t> buffer);

std::string_view CollectiveName(Collective collective);  ///< "all-reduce", as on the command line.
/// "all-reduce,tree": Error kInvalidArgument with what is allowed. "all" is all of them.
Result<std::vector<Collective>> ParseCollectives(std::string_view text);

}  // namespace weir::tools::emulate
