#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/dpdk/endpoint.h"
#include "transport/host_memory.h"
#include "transport/transport.h"

namespace weir::transport::dpdk {

/// The receiving end of a channel. A receive that is posted is told to the sender as a grant, and nothing is sent
/// without one: so each segment says for which slot it is and goes there, in whatever order they come, and nothing is
/// ever stored in between. What has come is told in acknowledgements, one for each burst.
///
/// Owned by whoever accepted; one thread at a time. Setup in receiver.cc, what runs for each packet in
/// receiver_datapath.cc.
class PacketReceiver final : public Receiver, private ChannelEnd {
 public:
  /// Under the endpoint's guard, as it comes from a packet.
  PacketReceiver(Endpoint* endpoint, Peer peer, std::uint32_t slots, const Nonce& listener, const Nonce& nonce);
  ~PacketReceiver() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override {
    return memory_.Register(data, size, kind);
  }
  Status Deregister(MemoryId memory) override { return memory_.Deregister(memory); }
  Outcome Irecv(std::span<const Slot> slots, Request** request) noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }

  bool OnHello(const Greeting& hello) noexcept override;
  /// It will be deleted under the guard that is held already.
  void Drop() { guarded_ = true; }

 private:
  struct Receive;

  /// One slot of a receive, and how much of its message is there.
  struct Place {
    std::byte* data = nullptr;
    Bytes capacity = 0;
    std::int32_t tag = 0;
    bool begun = false;
    Bytes total = 0;
    Bytes received = 0;
  };
  struct Receive final : Request {
    explicit Receive(Channel* channel) : Request(channel) {}
    std::array<Place, kMaxSlots> places;
    std::uint32_t number = 0;
    std::uint32_t count = 0;
    std::uint32_t complete = 0;
  };

  void OnPacket(const Header& header, const Datagram& datagram, Nanoseconds now) noexcept override;
  void AfterBurst(Nanoseconds now) noexcept override;
  Nanoseconds OnTick(Nanoseconds now) noexcept override;
  void Beat() noexcept override;
  void Leave() noexcept override;

  void OnData(const Datagram& datagram, Nanoseconds now) noexcept;
  bool IsNew(std::uint32_t sequence) const noexcept;
  void Mark(std::uint32_t sequence) noexcept;
  bool PlaceData(const Data& data, std::span<const std::byte> bytes) noexcept;
  void SeeGrants(std::uint32_t seen) noexcept;
  void Say(Kind kind, std::uint8_t flags, Nanoseconds now) noexcept;
  void FillMap(Ack* ack) const noexcept;

  std::uint32_t slots_;
  Nonce listener_;
  Nonce nonce_;
  bool guarded_ = false;
  HostMemory memory_;

  std::vector<Receive> receives_;   ///< All there are.
  std::vector<Receive*> free_;      ///< A stack.
  std::vector<Receive*> posted_;    ///< By number, modulo its size.
  std::uint32_t next_receive_ = 0;  ///< Number of the next one that is posted.
  std::uint32_t grants_seen_ = 0;   ///< The sender has all before this.
  std::uint32_t next_grant_ = 0;    ///< The next to tell.
  Nanoseconds grants_again_at_ = 0;
  Nanoseconds grants_wait_ = 0;

  std::uint32_t cumulative_ = 0;                    ///< All segments before this one came.
  std::uint32_t highest_ = 0;                       ///< None from this one on.
  std::array<std::uint64_t, kWindow / 64> came_{};  ///< A bit for each of the kWindow segments from cumulative_ on.
  std::uint32_t congested_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint64_t echo_ = 0;
  Nanoseconds echo_at_ = 0;
  bool echo_late_ = false;
  std::uint8_t answer_ = 0;
};

}  // namespace weir::transport::dpdk
