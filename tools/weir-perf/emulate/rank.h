#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coflow/status.h"
#include "tools/weir-perf/emulate/board.h"
#include "tools/weir-perf/emulate/ends.h"
#include "tools/weir-perf/emulate/feed.h"
#include "tools/weir-perf/emulate/net.h"
#include "tools/weir-perf/emulate/plan.h"
#include "tools/weir-perf/emulate/truth.h"

namespace weir::tools::emulate {

/// What is provoked while transfers are under way.
enum class Fault : std::uint8_t {
  kNone,
  kAbort,  ///< All ranks close everything, as NCCL does when a communicator is aborted.
  kKill,   ///< The last rank is killed.
};

struct Options {
  std::string plugin;
  int version = 0;  ///< 0: the highest that it has.
  int ranks = 2;
  int channels = 2;
  std::vector<Collective> collectives;
  std::vector<Bytes> sizes;  ///< That a rank brings in; of all-to-all for each rank.
  int rounds = 3;            ///< Of each collective and size.
  Bytes slice_bytes = 128 * 1024;
  int group = 1;            ///< Receives that are posted together, where the collective allows it.
  bool flush = false;       ///< Receives are flushed before anybody sees them, as for GPUs before Hopper.
  int cycles = 1;           ///< Init, connect, all collectives, close, finalize.
  Nanoseconds compute = 0;  ///< Between two collectives.
  Nanoseconds idle = 0;     ///< The progress thread sleeps so long when nothing moved; 0: it only yields, as NCCL's.
  Fault fault = Fault::kNone;
  Nanoseconds fault_after = 50 * kMillisecond;
  int profiler = 0;       ///< Version of the profiler that is fed; 0: the highest there is.
  bool profile = true;    ///< False: NCCL without a profiler.
  std::string report;     ///< Where our plugin reports coflows (WEIR_NCCL_REPORT), to compare; empty: nowhere.
  bool list_log = false;  ///< The plugin's log, to standard error.
  std::vector<std::string> namespaces;     ///< Network namespaces (ip netns), which ranks are in by turns; empty: here.
  std::vector<std::string> agent_sockets;  ///< Of the agents that ranks attach to by turns; empty: the environment's.
  /// Variables of the environment that ranks have by turns, one value after the other.
  std::vector<std::pair<std::string, std::vector<std::string>>> per_rank;
};

/// One rank: a process that stands for a GPU and NCCL's two threads for it. Its own service thread makes and closes
/// connections, its own progress thread does the transfers, and the thread that calls Run stands for the application.
class Rank {
 public:
  Rank(const Options& options, int rank, Board* board);
  /// Everything, until the end or the first that goes wrong. Error texts name the call and the rank.
  Status Run();

 private:
  Status RunCycle(std::uint32_t cycle);
  Status ConnectAll(std::uint32_t cycle);
  Status Listen(ReceiveEnd* end, void** listener, std::uint32_t cycle);
  Status PollConnections(std::uint32_t cycle, std::vector<void*>* listeners);
  Status RegisterAll();
  Status CloseAll();
  Status RunCase(std::size_t index, const Shape& shape, std::uint32_t seed);
  Status Transfer(const Shape& shape, std::vector<std::uint32_t>* buffer);
  bool RunKernel(std::size_t channel, std::vector<std::uint32_t>* buffer);
  bool Apply(const Instruction& instruction, std::size_t channel, std::vector<std::uint32_t>* buffer);
  void BeginEnds(const Shape& shape);
  Status OpenFeed();
  Status BeginComm(std::uint32_t cycle);
  Status EndComm();
  void AnnounceToFeed(const Shape& shape);
  void AnnounceToNet(const Shape& shape);
  Shape ShapeOf(Collective collective, Bytes size) const;
  Status OnFailure(const CallFailure& failure);
  Status ProvokeIfTime();
  Status Called(const char* call, abi::Result result) const;
  void CountLeaks(std::uint32_t cycle);
  /// On a thread of its own, which has ended when this returns.
  static Status OnThread(const std::function<Status()>& work);

  SendEnd* sender(int peer, std::size_t channel) const { return senders_[Index(peer, channel)].get(); }
  ReceiveEnd* receiver(int peer, std::size_t channel) const { return receivers_[Index(peer, channel)].get(); }
  std::size_t Index(int peer, std::size_t channel) const {
    return channel * static_cast<std::size_t>(options_.ranks) + static_cast<std::size_t>(peer);
  }

  const Options& options_;
  const int rank_;
  Board& board_;
  RankTale& tale_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<Feed> feed_;  ///< Null: nobody profiles.
  Truth truth_;
  std::vector<void*> send_parents_;  ///< By Index: the collective's event, or that of the send.
  std::vector<void*> receive_parents_;
  void* context_ = nullptr;
  abi::NetAttributes attributes_{};  ///< As told last.
  int device_ = 0;
  std::vector<std::unique_ptr<SendEnd>> senders_;  ///< By Index; null where nothing is sent.
  std::vector<std::unique_ptr<ReceiveEnd>> receivers_;
  std::vector<std::vector<Instruction>> plans_;  ///< By channel.
  std::vector<std::size_t> at_;                  ///< The next instruction of each.
  bool provoked_ = false;                        ///< The fault came: what fails from now on is meant to.
  bool ending_ = false;                          ///< Somebody wants an end: nothing more begins.
  std::uint64_t meetings_ = 0;
  Nanoseconds transfers_began_ = 0;
  std::int64_t descriptors_at_first_ = 0;
  std::int64_t memory_at_first_kb_ = 0;
};

}  // namespace weir::tools::emulate
