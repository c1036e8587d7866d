#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "agents/nccl/abi/net.h"
#include "agents/nccl/config.h"
#include "agents/nccl/event_book.h"
#include "agents/nccl/managed_lane.h"
#include "agents/nccl/marks.h"
#include "coflow/status.h"
#include "transport/pacer/pacer.h"
#include "transport/transport.h"

/// What NCCL holds of us as opaque pointers: ends of connections, and transfers under way on them. NCCL's service
/// thread makes, registers and closes, its progress thread transfers; each end has a lock, which is free but when a
/// buffer is registered while transfers go on.
namespace weir::nccl {

struct Context;
class Comm;

/// A send or receive under way. Owned by its Comm.
struct Transfer {
  Comm* comm = nullptr;
  transport::Request* request = nullptr;
  std::uint32_t buffers = 1;
};

/// Either end of a connection.
class Comm {
 public:
  static constexpr std::size_t kTransfers = kTransfersMax;

  explicit Comm(Context* context);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  /// Closes: at once, with transfers under way or without.
  virtual ~Comm();

  /// The handle of a registration is a MemoryId; NCCL only hands it back.
  Result<transport::MemoryId> Register(void* data, std::size_t size, int kind);
  /// Memory of a GPU, by its DMA-BUF.
  Result<transport::MemoryId> RegisterDmaBuf(int fd, Bytes offset, void* data, std::size_t size);
  Status Deregister(transport::MemoryId memory);
  /// On done of a receive, writes one size a buffer; `sizes` may be null.
  abi::Result Test(Transfer* transfer, int* done, int* sizes);

 protected:
  /// The channel, now that there is one; not null. It must not be replaced.
  void Attach(transport::Channel* channel);
  /// Before the channel goes.
  void Detach() noexcept;
  Transfer* Take(transport::Request* request) noexcept;
  bool full() const { return free_.empty(); }
  /// What NCCL's profiler says of a transfer; not known without one.
  TransferIdentity Ask(void* phandle) const;
  /// Says once why the channel failed. Returns what NCCL is to be told.
  abi::Result Failed();
  /// After each look at a transfer: some of it may have moved.
  virtual void OnLook() = 0;
  /// A transfer is over.
  virtual void OnDone() = 0;
  /// Ranks, channel and collective as far as they are known, for people; begins with ", ".
  virtual std::string Whereabouts() const { return ""; }

  std::mutex mutex_;
  Context* const context_;

 private:
  transport::Channel* channel_ = nullptr;
  bool failure_said_ = false;
  std::array<Transfer, kTransfers> transfers_;
  std::vector<Transfer*> free_;
};

class ListenComm {
 public:
  ListenComm(Context* context, std::unique_ptr<transport::Listener> listener)
      : context_(context), listener_(std::move(listener)) {}
  Context* context() const { return context_; }
  transport::Listener& listener() { return *listener_; }

 private:
  Context* context_;
  std::unique_ptr<transport::Listener> listener_;
};

class SendComm final : public Comm {
 public:
  /// `link` may be null: not managed.
  SendComm(Context* context, AgentLink* link, Nanoseconds hold_max, const Marking& marking)
      : Comm(context), marking_(marking), managed_(link, hold_max), lane_(&pacer_, &managed_) {}
  ~SendComm() override;
  /// What the connection is paced by; made before the connection is.
  transport::Lane* lane() { return &lane_; }
  void Connected(std::unique_ptr<transport::Sender> sender);

  /// Success with a null `*transfer`: not now, nothing was consumed.
  abi::Result Isend(const void* data, std::size_t size, int tag, transport::MemoryId memory, void* phandle,
                    Transfer** transfer);

 private:
  void OnLook() override;
  void OnDone() override;
  std::string Whereabouts() const override;
  /// Bytes that left, each counted once.
  Bytes Left() const { return lane_.counters().bytes - lane_.counters().repeated; }
  /// Which coflow the transfer belongs to; asked once for each, however often NCCL tries.
  void Identify(void* phandle, Nanoseconds now);

  TransferIdentity identity_;  ///< Of the transfer that NCCL tries, and the last that was known.
  bool identified_ = false;    ///< It is of the one that NCCL tries now.
  const Marking marking_;
  ManagedLane managed_;
  transport::Pacer pacer_;
  transport::Lane lane_;
  std::unique_ptr<transport::Sender> sender_;
};

class ReceiveComm final : public Comm {
 public:
  ReceiveComm(Context* context, std::unique_ptr<transport::Receiver> receiver);
  ~ReceiveComm() override;

  /// Success with a null `*transfer`: not now, nothing was consumed.
  abi::Result Irecv(std::span<const transport::Slot> slots, void* phandle, Transfer** transfer);
  /// Success with a null `*transfer`: there is nothing to wait for.
  abi::Result Iflush(std::span<const transport::Slot> slots, Transfer** transfer);

 private:
  void OnLook() override;
  void OnDone() override;
  std::string Whereabouts() const override;

  TransferIdentity identity_;  ///< Of the first receive that had one: ranks and channel stay what they are.
  std::unique_ptr<transport::Receiver> receiver_;
};

}  // namespace weir::nccl
