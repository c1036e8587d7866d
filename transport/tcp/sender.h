#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/clock.h"
#include "transport/host_memory.h"
#include "transport/pacer/pacer.h"
#include "transport/tcp/control_link.h"
#include "transport/tcp/options.h"
#include "transport/tcp/send_window.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace weir::transport::tcp {

/// The sending end of a channel. A message starts on the first stream, whole if it is small; the rest of a large one
/// goes, chunk by chunk, to the first stream that has room. What a stream may hold in the kernel is its share of the
/// channel's SendWindow. On a slow path only the first stream has one, unless the path loses segments: there each
/// stream that is added brings throughput.
///
/// Owned by whoever connected; one thread at a time. Setup in sender.cc, what runs for each message in
/// sender_datapath.cc.
class TcpSender final : public Sender {
 public:
  struct Made {
    TcpOptions options;
    Ends ends;
    std::uint32_t slots = 1;  ///< Of the receives at the other end.
    Socket control;
    std::vector<Socket> streams;
    Lane* lane = nullptr;
    const Clock* clock = nullptr;
  };

  explicit TcpSender(Made made);
  ~TcpSender() override;

  Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) override;
  Status Deregister(MemoryId memory) override;
  Outcome Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept override;
  Outcome Look() noexcept override;
  Outcome Test(Request* request, std::span<Bytes> sizes) noexcept override;
  const Status& failure() const noexcept override { return failure_; }
  std::size_t Descriptors(std::span<int> out) const noexcept override;

 private:
  /// A message under way. `assigned` bytes of it were given to streams, which still hold `chunks` pieces.
  struct Send final : Request {
    explicit Send(Channel* channel) : Request(channel) {}
    std::array<Part, kMaxParts> parts;
    std::size_t part_count = 0;
    Bytes total = 0;
    Bytes assigned = 0;
    std::uint32_t chunks = 0;
    std::uint32_t message = 0;
    std::int32_t tag = 0;
    bool started = false;
    bool done = false;
  };

  /// One connection, and the chunk that it is sending.
  struct Stream {
    Socket socket;
    Send* send = nullptr;
    Bytes offset = 0;             ///< Of the next byte, in the message.
    Bytes left = 0;               ///< Bytes of the chunk.
    std::size_t header_left = 0;  ///< Bytes of its header.
    std::uint32_t repeated = 0;   ///< Segments that the kernel had sent again when it was last asked.
    Bytes in_kernel = 0;          ///< Written and not acknowledged when the kernel was last asked, or written since.
    std::array<std::byte, kChunkBytes> header;
  };

  /// A receive that the peer posted; only where receives have several slots.
  struct Posted {
    Control frame;
    std::uint32_t taken = 0;  ///< Slots that have their message.
    std::uint32_t taken_mask = 0;
  };

  enum class Pumped { kIdle, kFull, kPaced, kFailed };

  void Progress() noexcept;
  Pumped Pump(Stream* stream) noexcept;
  bool Assign(Stream* stream) noexcept;
  ssize_t Write(Stream* stream, Bytes payload) noexcept;
  void Account(Stream* stream, Bytes payload) noexcept;
  void CheckControl(Nanoseconds now) noexcept;
  Bytes Room(Stream* stream, Bytes wanted) noexcept;
  void Sample(Nanoseconds now) noexcept;
  void LookAtPath(Nanoseconds now) noexcept;
  void Share(Nanoseconds now) noexcept;
  Outcome TakeSlot(std::int32_t tag, Bytes total) noexcept;
  bool OnPosted(const Control& frame) noexcept;
  Send* Next() noexcept;  ///< The oldest message that is not wholly assigned.
  void Fail(StatusCode code, const std::string& what) noexcept;

  TcpOptions options_;
  Ends ends_;
  std::uint32_t slots_;
  ControlLink control_;
  Nanoseconds control_at_ = 0;
  std::vector<Stream> streams_;
  SendWindow window_;
  std::size_t active_ = 1;  ///< Streams, from the first on, that share the window,
  Bytes share_ = 0;         ///< and what each of them may hold.
  Bytes written_ = 0;       ///< To all streams.
  Nanoseconds lossy_until_ = 0;
  Nanoseconds sample_at_ = 0;  ///< When to look at the window again,
  Nanoseconds path_at_ = 0;    ///< and at the path.
  Lane* lane_;
  LaneShare lane_share_;  ///< Of the lane, if there is one.
  const Clock& clock_;
  HostMemory memory_;
  Status failure_;

  std::vector<Send> sends_;   ///< All there are.
  std::vector<Send*> free_;   ///< A stack.
  std::vector<Send*> queue_;  ///< A ring of those not wholly assigned, oldest at queue_head_.
  std::size_t queue_head_ = 0;
  std::size_t queue_size_ = 0;
  std::uint32_t next_message_ = 0;
  std::size_t busy_streams_ = 0;

  std::vector<Posted> posted_;  ///< A ring of receives with open slots.
  std::size_t posted_head_ = 0;
  std::size_t posted_size_ = 0;
};

}  // namespace weir::transport::tcp
