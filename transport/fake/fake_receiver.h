#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "transport/fake/fake_network.h"
#include "transport/host_memory.h"

namespace weir::transport::fake {

/// The receiving end of a channel on a FakeNetwork: acknowledges what it could place, and lets the rest be sent again.
class FakeReceiver final : public Receiver {
 public:
  FakeReceiver(FakeNetwork* network, std::shared_ptr<Wire> wire);
  ~FakeReceiver() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override {
    return memory_.Register(data, size, kind);
  }
  Status Deregister(MemoryId memory) override { return memory_.Deregister(memory); }
  Outcome Irecv(std::span<const Slot> slots, Request** request) noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }

 private:
  struct Receive;
  struct Place {
    Receive* receive = nullptr;
    Slot slot;
    bool matched = false;
    Bytes total = 0;
    Bytes received = 0;
    std::set<Bytes> offsets;  ///< Of the packets that came; the sender never cuts a packet anew.
  };
  struct Receive final : Request {
    explicit Receive(Channel* channel) : Request(channel) {}
    std::array<Place, kMaxSlots> places;
    std::size_t count = 0;
    std::size_t matched = 0;
    std::size_t complete = 0;
  };

  void Progress();
  bool Take(const Packet& packet);
  Place* Begin(const Packet& packet);
  void Fail(StatusCode code, const std::string& what);

  FakeNetwork& network_;
  std::shared_ptr<Wire> wire_;  // Shared with the sender: each end may go first.
  HostMemory memory_;
  Status failure_;
  std::map<Receive*, std::unique_ptr<Receive>> receives_;
  std::deque<Receive*> unmatched_;
  std::map<std::uint32_t, Place*> open_;
  std::uint32_t next_message_ = 0;
};

}  // namespace weir::transport::fake
