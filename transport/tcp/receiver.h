#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/clock.h"
#include "transport/host_memory.h"
#include "transport/tcp/control_link.h"
#include "transport/tcp/options.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace weir::transport::tcp {

/// The receiving end of a channel. The first stream says which message begins, which decides which slot it is for; from
/// then on its chunks may come on any stream. A stream whose next chunk has no slot yet is left alone, so the kernel's
/// window tells the sender to wait.
///
/// Owned by whoever accepted; one thread at a time. Setup in receiver.cc, what runs for each message in
/// receiver_datapath.cc.
class TcpReceiver final : public Receiver {
 public:
  struct Made {
    TcpOptions options;
    Ends ends;
    std::uint32_t slots = 1;
    Socket control;
    std::vector<Socket> streams;
    const Clock* clock = nullptr;
  };

  explicit TcpReceiver(Made made);

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override;
  Status Deregister(MemoryId memory) override;
  Outcome Irecv(std::span<const Slot> slots, Request** request) noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }
  std::size_t Descriptors(std::span<int> out) const noexcept override;

 private:
  struct Receive;

  /// One slot of a receive, and how much of its message is there.
  struct Place {
    Receive* receive = nullptr;
    std::byte* data = nullptr;
    Bytes capacity = 0;
    std::int32_t tag = 0;
    bool matched = false;
    Bytes total = 0;
    Bytes announced = 0;  ///< By the chunks that came or are coming; never more than total.
    Bytes received = 0;
  };

  struct Receive final : Request {
    explicit Receive(Channel* channel) : Request(channel) {}
    std::array<Place, kMaxSlots> places;
    std::uint32_t count = 0;
    std::uint32_t matched = 0;
    std::uint32_t complete = 0;
  };

  /// One connection: bytes that were read ahead, and the chunk that is coming in.
  struct Stream {
    Socket socket;
    bool has_chunk = false;
    bool ended = false;  ///< The peer closed it.
    Chunk chunk;
    Place* place = nullptr;  ///< Where the chunk goes; null: not known yet.
    Bytes left = 0;          ///< Bytes of the chunk.
    std::size_t begin = 0;   ///< Of what was read ahead.
    std::size_t end = 0;
    std::vector<std::byte> ahead;
  };

  /// A message of several chunks, of which some are still to come.
  struct Open {
    std::uint32_t message = 0;
    Place* place = nullptr;
  };

  void Progress() noexcept;
  void Pump(Stream* stream) noexcept;
  bool NextChunk(Stream* stream) noexcept;
  bool FindPlace(Stream* stream) noexcept;
  bool Begin(Stream* stream) noexcept;
  bool TakePayload(Stream* stream) noexcept;
  void Account(Stream* stream, Bytes bytes) noexcept;
  bool Read(Stream* stream, std::byte* data, Bytes size, Bytes* got) noexcept;
  void JudgeEnds() noexcept;
  void CheckControl(Nanoseconds now) noexcept;
  void JudgeQuiet(Nanoseconds now) noexcept;
  Place* Match(std::int32_t tag) noexcept;
  void Fail(StatusCode code, const std::string& what) noexcept;

  TcpOptions options_;
  Ends ends_;
  std::uint32_t slots_;
  ControlLink control_;
  Nanoseconds control_at_ = 0;
  Bytes read_ = 0;               ///< From all streams.
  Bytes read_when_closed_ = 0;   ///< Once the control connection is closed: read_ when it last grew,
  Nanoseconds quiet_since_ = 0;  ///< and since when it did not.
  std::vector<Stream> streams_;
  const Clock& clock_;
  HostMemory memory_;
  Status failure_;

  std::vector<Receive> receives_;    ///< All there are.
  std::vector<Receive*> free_;       ///< A stack.
  std::vector<Receive*> unmatched_;  ///< A ring of those with open slots, oldest at unmatched_head_.
  std::size_t unmatched_head_ = 0;
  std::size_t unmatched_size_ = 0;
  std::uint32_t next_message_ = 0;
  std::vector<Open> open_;  ///< By message number modulo its size.
  std::size_t open_count_ = 0;
};

}  // namespace weir::transport::tcp
