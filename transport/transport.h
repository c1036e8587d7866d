#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coflow/ids.h"
#include "coflow/ip_address.h"
#include "coflow/status.h"
#include "coflow/units.h"

/// Moves messages between two processes, over whatever a backend uses. docs/transport.md has the rules in prose and the
/// table that maps these calls to NCCL's network interface, which they follow one to one.
///
/// Setup (listen, connect, accept, register) may allocate and make system calls, but never waits: what is not there yet
/// is a null pointer, and the caller asks again. On the path of a message (Isend, Irecv, Test) there is no allocation,
/// no lock and no log; "not now" is a value.
///
/// Threads: a backend has none. Work is done inside the calls, so whoever posted requests must keep calling Test. A
/// channel belongs to one thread at a time; different channels of one transport may be used by different threads.
namespace weir::transport {

class Lane;
class Channel;

inline constexpr std::size_t kHandleBytes = 120;  ///< NCCL passes 128; a plugin keeps a pointer in the other 8.
inline constexpr std::size_t kMaxParts = 8;       ///< Pieces of memory that one message is gathered from.
inline constexpr std::size_t kMaxSlots = 8;       ///< Messages that one receive takes.
inline constexpr Bytes kMaxMessageBytes = Bytes{1} << 40;

/// How a listener is reached: bytes that travel to the connecting side by the caller's own means. Opaque, comes from
/// outside, checked by Connect.
struct Handle {
  std::array<std::byte, kHandleBytes> bytes{};
};

using MemoryId = Id<struct MemoryTag>;  ///< A registration; 0 is "not registered", which every backend but RDMA takes.
enum class MemoryKind : std::uint8_t { kHost = 1, kCuda = 2, kDmaBuf = 4 };

enum class Outcome : std::uint8_t {
  kDone,    ///< It happened.
  kAgain,   ///< Not now; nothing was consumed, ask again.
  kFailed,  ///< The channel is broken; Channel::failure() says why. It stays so.
};

/// A piece of memory to send. Must stay untouched until the request is done.
struct Part {
  const void* data = nullptr;
  Bytes size = 0;
  MemoryId memory;
};

/// Room for one message. The sender may send less than the capacity; more breaks the channel.
struct Slot {
  void* data = nullptr;
  Bytes capacity = 0;
  std::int32_t tag = 0;
  MemoryId memory;
};

/// Something under way on a channel. Made by Isend or Irecv, and dead after the Test that returned kDone. Owned by the
/// channel: never deleted by the caller.
class Request {
 public:
  Channel& channel() const { return *channel_; }

 protected:
  explicit Request(Channel* channel) : channel_(channel) {}
  ~Request() = default;

 private:
  Channel* channel_;
};

/// The addresses of both ends of a channel.
struct Route {
  IpAddress own;
  IpAddress peer;
};

/// One end of a one-way connection. Deleting it closes it: at once, with requests in flight or without, never waiting
/// for the peer; their memory is not touched any more after that. Messages whose send was done before are still
/// delivered.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Makes memory known to the device. Error kUnsupported for a kind that the device does not take, kInvalidArgument
  /// for an empty range, kResourceExhausted at the limit. Ranges may overlap.
  virtual Result<MemoryId> Register(void* data, Bytes size, MemoryKind kind) = 0;
  /// Makes memory of another device known, of which `fd` is a DMA-BUF and which begins at `offset` there; `data` is
  /// where parts and slots say it is. Errors as Register.
  virtual Result<MemoryId> RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size);
  /// Error kNotFound for what is not registered.
  virtual Status Deregister(MemoryId memory) = 0;
  /// Makes progress on the channel, and says whether the request is done. kFailed is the end of the channel. On kDone
  /// for a receive, sizes[i] is the length of the message in slot i; sizes may be shorter or empty. A send is done when
  /// its memory may be reused, which is before the peer has it.
  virtual Outcome Test(Request* request, std::span<Bytes> sizes) noexcept = 0;
  /// Ok unless a call returned kFailed. Names both ends.
  virtual const Status& failure() const noexcept = 0;
  /// The kernel's sockets that carry the channel, for those who mark them, ask the kernel about them, or close them in
  /// a forked child; the channel's own, valid as long as it is. Those with data come first, and one for control is
  /// last; alone where a device carries the data. Writes as many as there is room for and returns how many; 0 where the
  /// kernel carries nothing.
  virtual std::size_t Descriptors([[maybe_unused]] std::span<int> out) const noexcept { return 0; }
  /// Between which addresses the bytes go, where no socket of the kernel's says so (Descriptors gives none); valid from
  /// the first moment of the channel to its last.
  virtual std::optional<Route> route() const noexcept { return std::nullopt; }
};

inline Result<MemoryId> Channel::RegisterDmaBuf(int, Bytes, void*, Bytes) {
  return Error(StatusCode::kUnsupported, "memory by DMA-BUF: this backend takes host memory (kind 1)");
}

class Sender : public Channel {
 public:
  /// Posts a message gathered from 1 to kMaxParts parts, in order. kAgain: the limit of requests is reached, or (on a
  /// channel of several slots) no receive with an open slot of this tag is posted yet. kDone sets *request.
  virtual Outcome Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept = 0;
  /// Makes progress without a request: a caller that holds its messages back would not notice otherwise that the peer
  /// is gone. kDone or kFailed.
  virtual Outcome Look() noexcept = 0;
};

class Receiver : public Channel {
 public:
  /// Posts room for as many messages as there are slots, at most as many as the listener was made for. Messages match
  /// receives in the order of posting; in a receive of several slots the tag picks the slot, in one of a single slot
  /// the tag says nothing. kAgain: the limit of requests is reached. kDone sets *request.
  virtual Outcome Irecv(std::span<const Slot> slots, Request** request) noexcept = 0;
  /// For memory of a GPU that may not see at once what a device wrote there, after the Test that said kDone: when the
  /// request that this makes is done, it does. `slots` are those of the receive, with what came as their capacity.
  /// Null: nothing is to be waited for. Errors: kUnsupported where the backend takes no memory of GPUs;
  /// kResourceExhausted at the limit of requests; kInvalidArgument for what is not registered. The first of a channel
  /// may make system calls.
  virtual Result<Request*> Flush([[maybe_unused]] std::span<const Slot> slots) noexcept {
    return Error(StatusCode::kUnsupported,
                 "a flush of a GPU's memory: this backend takes host memory, which needs none");
  }
};

/// A connection that is being made. Deleting it gives up.
class Connector {
 public:
  virtual ~Connector() = default;
  /// The sender, or null when it is not ready yet. Never blocks. Errors: kUnavailable (nobody there, refused, out of
  /// time), kPermissionDenied (not the listener that made the handle), kProtocol (not a Weir of a version that we
  /// speak).
  virtual Result<std::unique_ptr<Sender>> Poll() = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual const Handle& handle() const = 0;
  /// The receiver of the one that connected, or null. Never blocks. A stranger is turned away and counted, and does not
  /// make this fail. The listener may be deleted after the first success. Errors: kResourceExhausted, where this host
  /// has been short of what a connection takes for a while; the next call may be luckier.
  virtual Result<std::unique_ptr<Receiver>> Accept() = 0;
};

/// What a network card, or what stands for one, can do.
struct Device {
  std::string name;            ///< "eth0"
  std::string address;         ///< For people.
  std::string pci_path;        ///< /sys/devices/...; empty for a virtual one.
  BytesPerSecond speed = 0;    ///< 0: unknown.
  std::uint32_t requests = 0;  ///< That may be under way on a channel.
  std::uint32_t slots = 0;     ///< At most kMaxSlots.
  std::uint8_t memory_kinds = static_cast<std::uint8_t>(MemoryKind::kHost);
};

/// A backend. Created by the backend's own Make function. Outlives what it made. Any thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;
  virtual const std::vector<Device>& devices() const = 0;
  /// Opens a door for one channel whose receives have 1 to `slots` slots (1 .. kMaxSlots). With 1, messages set out
  /// before a receive is posted; with more, they wait for it, as tags are matched by the sender. Errors: kNotFound (no
  /// such device), kInvalidArgument, kResourceExhausted.
  virtual Result<std::unique_ptr<Listener>> Listen(std::size_t device, std::uint32_t slots) = 0;
  /// Begins to connect. `lane` may be null (never paced); else it outlives the sender and belongs to the same thread.
  /// Errors: kNotFound (no such device), kInvalidArgument (no handle of this backend), kProtocol (other version).
  virtual Result<std::unique_ptr<Connector>> Connect(std::size_t device, const Handle& handle, Lane* lane) = 0;
};

}  // namespace weir::transport
