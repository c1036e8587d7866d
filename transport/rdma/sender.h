#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/clock.h"
#include "transport/pacer/pacer.h"
#include "transport/rdma/channel_memory.h"
#include "transport/rdma/options.h"
#include "transport/rdma/queues.h"
#include "transport/rdma/watch.h"
#include "transport/transport.h"

namespace weir::transport::rdma {

/// What both ends of a channel are made of, once they are connected.
struct Made {
  RdmaOptions options;
  tcp::Ends ends;
  Port* port = nullptr;
  GidEntry own;          ///< The receiver's only: the address of ours,
  std::uint8_t mtu = 0;  ///< and how large packets may be.
  std::unique_ptr<Queues> queues;
  std::unique_ptr<Room> incoming;  ///< That the peer writes into: the sender's ring, or the receiver's records.
  std::unique_ptr<Room> outgoing;  ///< The receiver's own copy of what it writes into the sender's ring.
  tcp::Socket side;
  End peer;
  std::uint32_t slots = 1;     ///< Of each receive.
  std::uint32_t requests = 1;  ///< Entries of the ring.
  Lane* lane = nullptr;
  const Clock* clock = nullptr;
};

/// The sending end of a channel. A message waits for a receive, which its peer writes into the ring; then the device
/// writes it there, in pieces, each on the queue pair with room that is next. The last word on each queue pair that
/// carried a piece is a mark.
///
/// How much is under way on each queue pair is bounded, since what the device has cannot be called back: so a lane's
/// level, rate and gate bite within a window. The window follows what the queue pair gets done: about
/// RdmaOptions::window_time of it, on top of the time that a piece takes when nobody is in its way. A message whose
/// lane changes its level goes on on the queue pairs of the new one.
///
/// A device may do its work in the thread that hands it over (Soft-RoCE does). So that other channels of the thread
/// have their turn, one call hands over for about RdmaOptions::window_time, in pieces that take no longer.
///
/// Owned by whoever connected; one thread at a time. Setup in sender.cc, what runs for each message in
/// sender_datapath.cc, what comes back in sender_completions.cc.
class RdmaSender final : public Sender {
 public:
  static constexpr std::uint32_t kDepth = 128;  ///< Requests of a queue pair.

  explicit RdmaSender(Made made);
  ~RdmaSender() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override;
  Result<MemoryId> RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size) override;
  Status Deregister(MemoryId memory) override;
  Outcome Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept override;
  Outcome Look() noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }
  std::size_t Descriptors(std::span<int> out) const noexcept override { return watch_.Descriptors(out); }

 private:
  /// A message under way. `assigned` bytes of it were handed to the device, which still works on `open` requests.
  struct Send final : Request {
    explicit Send(Channel* channel) : Request(channel) {}
    std::array<Part, kMaxParts> parts;
    std::array<std::uint32_t, kMaxParts> keys{};
    std::array<Registrations::Entry*, kMaxParts> borrowed{};
    std::size_t part_count = 0;
    Posted::Room room;
    Mark mark;  ///< Receive and slot that it is for.
    Bytes total = 0;
    Bytes assigned = 0;
    std::uint32_t open = 0;
    std::uint32_t pairs = 0;  ///< That carried a piece, one bit each.
    bool matched = false;
    bool closed = false;  ///< Nothing more is to be handed over.
    bool done = false;
  };

  /// A queue pair, and what it works on, in order.
  struct Pair {
    ibv_qp* pair = nullptr;
    Bytes bytes = 0;
    std::uint32_t head = 0;
    std::uint32_t size = 0;
    Nanoseconds moved_at = 0;  ///< When it last got something done, or began; a Watched time.
    Bytes window = 0;          ///< Bytes that it may have under way.
    bool filled = false;       ///< The window was full since the last look at it,
    Nanoseconds looked_at = 0;
    Bytes done = 0;            ///< and so much got done since,
    std::uint32_t polls = 0;   ///< seen in so many polls.
    Nanoseconds quickest = 0;  ///< The shortest time that a piece ever took; 0: none yet.
    struct Work {
      Send* send = nullptr;
      Bytes bytes = 0;
      Nanoseconds handed_at = 0;
    };
    std::array<Work, kDepth> work;
  };

  /// A receive that the peer posted and that has open slots.
  struct Open {
    Posted posted;
    std::uint32_t entry = 0;
    std::uint32_t taken = 0;
    std::uint32_t taken_mask = 0;
  };

  enum class Pushed : std::uint8_t { kAll, kFull, kPaced, kFailed };

  bool Keys(Send* send) noexcept;
  void Release(Send* send) noexcept;
  void Progress() noexcept;
  void Serve(Nanoseconds now) noexcept;
  Pushed Push(Send* send, Nanoseconds begin, Nanoseconds* now) noexcept;
  Nanoseconds Timed(Bytes bytes, Nanoseconds begin) noexcept;
  Bytes InTime() const noexcept;
  Bytes Admit(Bytes wanted, Nanoseconds now) noexcept;
  Pair* PairWithRoom() noexcept;
  void Adapt(Pair* pair, Nanoseconds now) noexcept;
  bool Piece(Send* send, Pair* pair, Bytes bytes, Nanoseconds now) noexcept;
  bool Close(Send* send, Nanoseconds now) noexcept;
  bool Hand(Send* send, Pair* pair, ibv_send_wr* request, Bytes bytes, Nanoseconds now) noexcept;
  Bytes Gather(const Send& send, Bytes bytes, std::span<ibv_sge> pieces, int* count) const noexcept;
  void PaceByDevice() noexcept;
  bool Match(Send* send) noexcept;
  Outcome TakeSlot(Send* send, std::int32_t tag) noexcept;
  bool Take(Open* open, std::uint32_t slot, Send* send) noexcept;

  void Poll(Nanoseconds now) noexcept;
  void OnSent(std::uint64_t pair, Nanoseconds now) noexcept;
  void OnPosted(std::uint32_t entry) noexcept;
  void OnError(const ibv_wc& completion, Nanoseconds now) noexcept;
  void Heed(Watch::State state) noexcept;
  void CheckBounds(Nanoseconds now) noexcept;
  void Fail(StatusCode code, const std::string& what) noexcept;

  RdmaOptions options_;
  tcp::Ends ends_;
  Port& port_;
  std::unique_ptr<Room> ring_;
  End peer_;
  std::uint32_t slots_;
  Lane* lane_;
  LaneShare lane_share_;  ///< Of the lane, if there is one.
  const Clock& clock_;
  ChannelMemory memory_;
  Watch watch_;
  std::unique_ptr<Queues> queues_;  ///< Below the memory that it works on, so that it goes first.
  Status failure_;

  std::vector<Pair> pairs_;
  std::size_t next_pair_ = 0;
  Bytes under_way_ = 0;             ///< On all queue pairs.
  double hand_ns_per_byte_ = 0;     ///< What handing over takes of our thread; smoothed.
  BytesPerSecond device_rate_ = 0;  ///< That the device was told; 0: none.

  std::vector<Send> sends_;   ///< All there are.
  std::vector<Send*> free_;   ///< A stack.
  std::vector<Send*> queue_;  ///< A ring of those not wholly handed over, oldest at queue_head_.
  std::size_t queue_head_ = 0;
  std::size_t queue_size_ = 0;

  std::vector<Open> open_;  ///< A ring of receives with open slots.
  std::size_t open_head_ = 0;
  std::size_t open_size_ = 0;
  std::uint32_t next_posted_ = 0;
};

}  // namespace weir::transport::rdma
