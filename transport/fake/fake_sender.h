#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "transport/fake/fake_network.h"
#include "transport/host_memory.h"
#include "transport/pacer/pacer.h"

namespace weir::transport::fake {

/// The sending end of a channel on a FakeNetwork: sends packets, and again those that are not acknowledged.
class FakeSender final : public Sender {
 public:
  FakeSender(FakeNetwork* network, std::shared_ptr<Wire> wire, Lane* lane);
  ~FakeSender() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override {
    return memory_.Register(data, size, kind);
  }
  Status Deregister(MemoryId memory) override { return memory_.Deregister(memory); }
  Outcome Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept override;
  Outcome Look() noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }

 private:
  struct Send final : Request {
    explicit Send(Channel* channel) : Request(channel) {}
    std::vector<Part> parts;
    std::int32_t tag = 0;
    std::uint32_t message = 0;
    Bytes total = 0;
    Bytes sent = 0;  ///< At least once.
    Bytes acked = 0;
    bool done = false;
  };
  /// A packet that is not acknowledged.
  struct Flying {
    Send* send = nullptr;
    Bytes offset = 0;
    Bytes size = 0;
    Nanoseconds again_at = 0;
  };
  struct Posted {
    std::vector<Slot> slots;
    std::vector<bool> taken;
  };

  void Progress();
  void TakeAcks();
  void Repeat();
  void SendNew();
  void Transmit(std::uint64_t number, Flying* flying);
  Outcome TakeSlot(std::int32_t tag, Bytes total);
  void Fail(StatusCode code, const std::string& what);

  FakeNetwork& network_;
  std::shared_ptr<Wire> wire_;  // Shared with the receiver: each end may go first.
  Lane* lane_;
  LaneShare lane_share_;  ///< Of the lane, if there is one.
  HostMemory memory_;
  Status failure_;
  std::map<Send*, std::unique_ptr<Send>> sends_;
  std::deque<Send*> queue_;  ///< Not wholly sent once.
  std::map<std::uint64_t, Flying> flying_;
  std::deque<Posted> posted_;
  std::uint64_t next_number_ = 0;
  std::uint32_t next_message_ = 0;
};

}  // namespace weir::transport::fake
