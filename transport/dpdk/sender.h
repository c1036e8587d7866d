#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/dpdk/congestion.h"
#include "transport/dpdk/endpoint.h"
#include "transport/host_memory.h"
#include "transport/pacer/pacer.h"
#include "transport/transport.h"

namespace weir::transport::dpdk {

/// The sending end of a channel. Cuts messages into segments as the receiver's grants, the congestion window and the
/// lane allow, keeps a record of each until it is acknowledged, and sends again what is lost: what was sent earlier
/// than something that has come, by more than packets overtake each other (RACK, RFC 8985, section 6.2), and, when
/// nothing comes back, first one segment and then everything (RFC 6298). A send is done when all of it is acknowledged,
/// so its memory is what is sent again.
///
/// Owned by whoever connected; one thread at a time. Setup in sender.cc, what runs for each packet in
/// sender_datapath.cc.
class PacketSender final : public Sender, private ChannelEnd {
 public:
  /// Under the endpoint's guard. `channel` is the number that its connector had.
  PacketSender(Endpoint* endpoint, Peer peer, std::uint64_t channel, std::uint32_t slots, Lane* lane,
               std::unique_ptr<CongestionControl> congestion);
  ~PacketSender() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override {
    return memory_.Register(data, size, kind);
  }
  Status Deregister(MemoryId memory) override { return memory_.Deregister(memory); }
  Outcome Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept override;
  Outcome Look() noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }
  std::optional<Route> route() const noexcept override {
    return Route{endpoint_.options().address, peer_.path.destination};
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Send final : Request {
    explicit Send(Channel* channel) : Request(channel) {}
    std::array<Part, kMaxParts> parts;
    std::size_t part_count = 0;
    Bytes total = 0;
    Bytes cut = 0;             ///< Into segments.
    std::uint32_t flying = 0;  ///< Segments that are not acknowledged.
    std::uint32_t receive = 0;
    std::uint8_t slot = 0;
    bool begun = false;  ///< It has a segment, and so a place at the receiver.
    bool done = false;
  };

  enum class State : std::uint8_t { kFree, kFlying, kLost, kAcknowledged };

  /// A segment that is not acknowledged, or waits for one before it that is not.
  struct Segment {
    Send* send = nullptr;
    Bytes offset = 0;
    Nanoseconds sent_at = 0;
    std::uint32_t before = kNone;  ///< In its list, by place in segments_.
    std::uint32_t after = kNone;
    std::uint16_t size = 0;
    State state = State::kFree;
  };
  /// Through Segment::before and after. The flying ones are in the order in which they were sent last.
  struct List {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
  };

  struct Granted {
    Grant grant;
    std::uint32_t receive = 0;
    bool there = false;
    std::uint8_t taken_mask = 0;
  };

  void OnPacket(const Header& header, const Datagram& datagram, Nanoseconds now) noexcept override;
  void AfterBurst(Nanoseconds now) noexcept override;
  Nanoseconds OnTick(Nanoseconds now) noexcept override;
  void OnPaced(Nanoseconds now) noexcept override;
  void Beat() noexcept override;
  void Leave() noexcept override;

  void OnAck(const Ack& ack, bool late, Nanoseconds now) noexcept;
  bool TakeAck(const Ack& ack) noexcept;
  bool Acknowledge(std::uint32_t sequence) noexcept;
  void TakeGrants(const Ack& ack, Nanoseconds now) noexcept;
  Nanoseconds MeasureRoundTrip(const Ack& ack, Nanoseconds now) noexcept;
  void FindLost() noexcept;
  void Probe(Nanoseconds now) noexcept;
  void CheckTimeout(Nanoseconds now) noexcept;

  void Progress(Nanoseconds now) noexcept;
  void Pump(Nanoseconds now) noexcept;
  void Rest(Nanoseconds now) noexcept;
  bool Repeat(Nanoseconds now) noexcept;
  bool SendNew(Nanoseconds now) noexcept;
  bool Transmit(std::uint32_t sequence, std::uint8_t flags, Nanoseconds now) noexcept;
  bool Afford(Bytes bytes, Bytes wanted, Nanoseconds now) noexcept;
  bool Fits(Bytes bytes) noexcept;
  Outcome TakeSlot(std::int32_t tag, Bytes total, Send* send) noexcept;
  Granted* GrantOf(std::uint32_t receive) noexcept;
  void SayPing(std::uint8_t flags) noexcept;
  FramePath PathOf(std::uint32_t sequence) const noexcept;

  Segment& At(std::uint32_t sequence) { return segments_[sequence % kWindow]; }
  void Append(List* list, std::uint32_t sequence) noexcept;
  void Unlink(List* list, std::uint32_t sequence) noexcept;

  std::uint32_t slots_;
  Lane* lane_;
  LaneShare lane_share_;  ///< Of the lane, if there is one.
  std::unique_ptr<CongestionControl> congestion_;
  HostMemory memory_;
  Bytes segment_bytes_;  ///< Of the largest segment.

  std::vector<Send> sends_;   ///< All there are.
  std::vector<Send*> free_;   ///< A stack.
  std::vector<Send*> queue_;  ///< A ring of those not wholly cut, oldest at queue_head_.
  std::size_t queue_head_ = 0;
  std::size_t queue_size_ = 0;

  std::vector<Segment> segments_;
  List flying_;
  List lost_;
  std::uint32_t oldest_ = 0;  ///< Not acknowledged.
  std::uint32_t next_ = 0;
  Bytes flying_bytes_ = 0;
  Bytes lost_bytes_ = 0;          ///< Found,
  Bytes acknowledged_bytes_ = 0;  ///< and acknowledged, since congestion control was told.
  bool limited_ = false;          ///< The window was too small for a segment since then.
  bool refused_ = false;          ///< The lane let nothing pass in this call.

  std::vector<Granted> granted_;  ///< By receive, modulo its size.
  std::uint32_t grants_seen_ = 0;
  std::uint32_t next_receive_ = 0;  ///< The receive of the next message.
  bool confirm_ = false;            ///< Grants came, and nothing was sent since.

  Nanoseconds smooth_ = 0;  ///< Round trip; 0: not measured yet.
  Nanoseconds variation_ = 0;
  Nanoseconds newest_sent_at_ = 0;  ///< Of the acknowledged ones.
  Nanoseconds progress_at_ = 0;     ///< An acknowledgement last brought something, or a timeout ended.
  bool probed_ = false;             ///< Since then.
  Nanoseconds timed_out_at_ = 0;    ///< The window was cut then, and nothing sent later has come; 0: it was not.
  std::uint32_t backoff_ = 0;
  std::uint32_t congested_ = 0;  ///< As the last acknowledgement counted.
  std::uint32_t arrived_ = 0;
  Bytes allowance_ = 0;  ///< Of the lane, not used yet.
};

}  // namespace weir::transport::dpdk
