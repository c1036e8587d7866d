#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/rdma/flush_queue.h"
#include "transport/rdma/sender.h"

namespace weir::transport::rdma {

/// The receiving end of a channel. Each receive is written into an entry of the sender's ring, on the first queue pair;
/// the messages come by themselves, and marks say when they are whole. There is always room for as many marks as the
/// receives that are posted can bring, so the device never has to tell the sender to wait.
///
/// Owned by whoever accepted; one thread at a time. Setup in receiver.cc, what runs for each message in
/// receiver_datapath.cc.
class RdmaReceiver final : public Receiver {
 public:
  explicit RdmaReceiver(Made made);
  ~RdmaReceiver() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override;
  Result<MemoryId> RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size) override;
  Status Deregister(MemoryId memory) override;
  Outcome Irecv(std::span<const Slot> slots, Request** request) noexcept override;
  Result<Request*> Flush(std::span<const Slot> slots) noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }
  std::size_t Descriptors(std::span<int> out) const noexcept override { return watch_.Descriptors(out); }

 private:
  /// One slot of a receive.
  struct Place {
    Bytes capacity = 0;
    Bytes total = 0;
    std::uint32_t ends = 0;      ///< Queue pairs that are through,
    std::uint32_t ends_all = 0;  ///< of these; 0: not known yet.
    bool complete = false;
    Registrations::Entry* borrowed = nullptr;
  };

  /// A receive; its place among all is its entry in the sender's ring.
  struct Receive final : Request {
    explicit Receive(Channel* channel) : Request(channel) {}
    std::array<Place, kMaxSlots> places;
    std::uint32_t count = 0;  ///< 0: not posted.
    std::uint32_t complete = 0;
    std::uint32_t number = 0;
  };

  bool Prepare(std::span<const Slot> slots, Receive* receive, Posted* posted) noexcept;
  bool Advertise(const Posted& posted, std::uint32_t entry) noexcept;
  void Release(Receive* receive) noexcept;
  /// What a flush needs; made with the first memory of a GPU, or with the first flush.
  Status PrepareToFlush();
  Outcome TestFlush(FlushQueue::Flush* flush) noexcept;
  void Progress() noexcept;
  void OnMark(std::uint32_t value, Bytes bytes) noexcept;
  bool Account(const Mark& mark, Bytes bytes, Place* place) noexcept;
  void OnError(const ibv_wc& completion) noexcept;
  void Fail(StatusCode code, const std::string& what) noexcept;

  RdmaOptions options_;
  tcp::Ends ends_;
  Port& port_;
  GidEntry own_;
  std::uint8_t mtu_;
  std::unique_ptr<Room> records_;
  std::unique_ptr<Room> ring_copy_;
  End peer_;
  std::uint32_t slots_;
  const Clock& clock_;
  ChannelMemory memory_;
  Watch watch_;
  std::unique_ptr<Queues> queues_;       ///< Below the memory that it works on, so that it goes first.
  std::unique_ptr<FlushQueue> flushes_;  ///< Null: nothing needed it yet.
  Status failure_;

  bool closed_ = false;              ///< The peer is gone; what it sent before is still there to be found.
  std::uint32_t advertising_ = 0;    ///< Entries that the device still writes.
  Nanoseconds advertised_at_ = 0;    ///< When it last got one done, or was seen with none; a Watched time.
  std::vector<Receive> receives_;    ///< All there are.
  std::vector<std::uint32_t> free_;  ///< A stack.
  std::uint32_t next_number_ = 0;
};

/// Requests to send that a receiver's first queue pair must take: its entries, and some whose end it has not seen yet.
constexpr std::uint32_t AdvertiseDepth(std::uint32_t requests) {
  return requests + 16;
}

}  // namespace weir::transport::rdma
