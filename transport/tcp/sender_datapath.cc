// What the sending end does for each message: no allocation, no lock, no log until the channel has failed.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/tcp/kernel_queue.h"
#include "transport/tcp/sender.h"

namespace weir::transport::tcp {
namespace {

constexpr Nanoseconds kControlEvery = 100 * kMicrosecond;
constexpr Nanoseconds kSampleEvery = 2 * kMillisecond;
constexpr Nanoseconds kPathEvery = 10 * kMillisecond;
/// So long after a loss, all streams are used.
constexpr Nanoseconds kLossyFor = kSecond;
/// A stream shares the window with others only if so much is left for each.
constexpr Bytes kShareMin = 1024 * 1024;
/// Of a chunk where there is one stream only: large, as each chunk costs both ends a call; bounded, since a message
/// that is under way must be able to use further streams when segments are lost.
constexpr Bytes kChunkMax = 4 * 1024 * 1024;

/// Room for so much is worth a call, or for half of what may be in the kernel if that is less. More leaves the sender
/// idle while the receiver copies; less costs calls.
constexpr Bytes kWorth = 128 * 1024;

}  // namespace

Outcome TcpSender::Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept {
  *request = nullptr;
  if (!failure_.ok()) return Outcome::kFailed;
  if (free_.empty()) {
    Progress();
    return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  }
  Bytes total = 0;
  for (const Part& part : parts) total += std::min(part.size, kMaxMessageBytes + 1 - total);
  if (parts.empty() || parts.size() > kMaxParts || total > kMaxMessageBytes) {
    Fail(StatusCode::kInvalidArgument, "a message has 1 to 8 parts and at most 1 TiB");
    return Outcome::kFailed;
  }
  if (slots_ > 1) {
    const Outcome slot = TakeSlot(tag, total);
    if (slot != Outcome::kDone) return slot;
  }
  Send* send = free_.back();
  free_.pop_back();
  std::copy(parts.begin(), parts.end(), send->parts.begin());
  send->part_count = parts.size();
  send->total = total;
  send->assigned = 0;
  send->chunks = 0;
  send->message = next_message_++;
  send->tag = tag;
  send->started = false;
  send->done = false;
  queue_[(queue_head_ + queue_size_++) % queue_.size()] = send;
  Progress();
  if (!failure_.ok()) return Outcome::kFailed;
  *request = send;
  return Outcome::kDone;
}

Outcome TcpSender::Look() noexcept {
  if (failure_.ok()) Progress();
  return failure_.ok() ? Outcome::kDone : Outcome::kFailed;
}

Outcome TcpSender::Test(Request* request, std::span<Bytes> sizes) noexcept {
  Send* send = static_cast<Send*>(request);
  if (!send->done && failure_.ok()) Progress();
  if (!send->done) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  if (!sizes.empty()) sizes[0] = send->total;
  free_.push_back(send);
  return Outcome::kDone;
}

void TcpSender::Progress() noexcept {
  const Nanoseconds now = clock_.Now();
  if (now >= control_at_) CheckControl(now);
  if (!failure_.ok()) return;
  if (now >= sample_at_) Sample(now);
  for (Stream& stream : streams_) {
    const Pumped pumped = Pump(&stream);
    if (pumped == Pumped::kPaced) window_.OnPause();
    if (pumped == Pumped::kFailed || pumped == Pumped::kPaced) return;
    // Others are of use only for chunks that they hold already, or that the streams before them cannot take.
    if (busy_streams_ == 0 && (queue_size_ == 0 || pumped == Pumped::kIdle)) break;
  }
  if (queue_size_ > 0 || busy_streams_ > 0) return;
  window_.OnPause();
  if (lane_ != nullptr) lane_share_.Drained(now);
}

TcpSender::Pumped TcpSender::Pump(Stream* stream) noexcept {
  while (true) {
    if (stream->send == nullptr && !Assign(stream)) return Pumped::kIdle;
    Bytes payload = stream->left;
    if (lane_ != nullptr && payload > 0) {
      payload = lane_share_.Admit(payload, clock_.Now());
      if (payload == 0) return Pumped::kPaced;
    }
    const Bytes room = Room(stream, payload);
    if (lane_ != nullptr && room < payload) lane_->Return(payload - room);
    payload = std::min(payload, room);
    if (payload == 0 && stream->left > 0) return Pumped::kFull;
    const ssize_t wrote = Write(stream, payload);
    const Bytes written = wrote < 0 ? 0 : static_cast<Bytes>(wrote);
    const Bytes of_header = std::min<Bytes>(written, stream->header_left);
    stream->header_left -= of_header;
    stream->in_kernel += written;
    written_ += written;
    if (lane_ != nullptr) lane_->Return(payload - (written - of_header));
    Account(stream, written - of_header);
    if (wrote < 0) {
      if (errno == EAGAIN || errno == EINTR) return Pumped::kFull;
      const int error = errno;
      Fail(StatusCode::kUnavailable,
           error == EPIPE || error == ECONNRESET ? "the peer closed the channel" : std::strerror(error));
      return Pumped::kFailed;
    }
  }
}

bool TcpSender::Assign(Stream* stream) noexcept {
  Send* send = Next();
  if (send == nullptr) return false;
  const auto number = static_cast<std::size_t>(stream - streams_.data());
  if (number >= active_ || (!send->started && number > 0)) return false;
  const Bytes rest = send->total - send->assigned;
  const Bytes length =
      std::min(rest, active_ == 1 ? std::max(kChunkMax, options_.stripe_bytes) : options_.stripe_bytes);
  stream->send = send;
  stream->offset = send->assigned;
  stream->left = length;
  stream->header_left = kChunkBytes;
  EncodeChunk({send->tag, send->message, static_cast<std::uint32_t>(length), send->assigned, send->total},
              stream->header);
  send->started = true;
  send->assigned += length;
  send->chunks++;
  busy_streams_++;
  if (send->assigned == send->total) {
    queue_head_ = (queue_head_ + 1) % queue_.size();
    queue_size_--;
  }
  return true;
}

/// How many of `wanted` bytes of payload the stream may take now: all, a good part of its share, or 0.
Bytes TcpSender::Room(Stream* stream, Bytes wanted) noexcept {
  // What fits into one chunk cannot use the other streams, so nothing is kept free for them.
  const Bytes limit = window_.LimitFor(stream->send->total);
  const Bytes most = stream->send->total > options_.stripe_bytes ? std::min(share_, limit) : limit;
  const Bytes worth = std::min({wanted, most / 2, kWorth});
  if (stream->in_kernel + worth > most) stream->in_kernel = Unacknowledged(stream->socket);
  if (stream->in_kernel + worth > most) return 0;
  return std::min(wanted, most - stream->in_kernel);
}

void TcpSender::Sample(Nanoseconds now) noexcept {
  sample_at_ = now + kSampleEvery;
  Bytes in_kernel = 0;
  for (Stream& stream : streams_) {
    if (stream.in_kernel > 0) stream.in_kernel = Unacknowledged(stream.socket);
    in_kernel += stream.in_kernel;
  }
  window_.OnAcknowledged(now, written_ - in_kernel);
  if (now >= path_at_) LookAtPath(now);
  Share(now);
}

void TcpSender::LookAtPath(Nanoseconds now) noexcept {
  path_at_ = now + kPathEvery;
  for (Stream& stream : streams_) {
    const Path path = AskPath(stream.socket);
    if (path.repeated != stream.repeated) lossy_until_ = now + kLossyFor;
    stream.repeated = path.repeated;
    if (&stream == streams_.data() && path.segment > 0) window_.OnPath(path.round_trip, path.segment);
  }
}

void TcpSender::Share(Nanoseconds now) noexcept {
  const Bytes least = std::max(kShareMin, window_.least());
  active_ = std::clamp<std::size_t>(window_.limit() / least, 1, streams_.size());
  if (now < lossy_until_) active_ = streams_.size();
  share_ = std::max(window_.limit() / active_, window_.least());
}

ssize_t TcpSender::Write(Stream* stream, Bytes payload) noexcept {
  std::array<iovec, kMaxParts + 1> pieces;
  std::size_t count = 0;
  if (stream->header_left > 0) {
    pieces[count++] = {stream->header.data() + (kChunkBytes - stream->header_left), stream->header_left};
  }
  Bytes skip = stream->offset;
  const Send& send = *stream->send;
  for (std::size_t i = 0; i < send.part_count && payload > 0; ++i) {
    const Part& part = send.parts[i];
    if (skip >= part.size) {
      skip -= part.size;
      continue;
    }
    const Bytes size = std::min(part.size - skip, payload);
    // The kernel only reads; iovec has no form for that.
    pieces[count++] = {const_cast<char*>(static_cast<const char*>(part.data)) + skip, size};
    payload -= size;
    skip = 0;
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return sendmsg(stream->socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void TcpSender::Account(Stream* stream, Bytes payload) noexcept {
  stream->offset += payload;
  stream->left -= payload;
  if (stream->left > 0 || stream->header_left > 0) return;
  Send* send = stream->send;
  stream->send = nullptr;
  busy_streams_--;
  send->chunks--;
  send->done = send->chunks == 0 && send->assigned == send->total;
}

TcpSender::Send* TcpSender::Next() noexcept {
  return queue_size_ == 0 ? nullptr : queue_[queue_head_];
}

void TcpSender::CheckControl(Nanoseconds now) noexcept {
  control_at_ = now + kControlEvery;
  const ControlLink::State state = control_.Poll(now, [this](const Control& frame) { return OnPosted(frame); });
  if (state == ControlLink::State::kOpen) {
    if (control_.Dead(now, streams_))
      Fail(StatusCode::kUnavailable, "the link is dead: nothing came back within the bound");
    return;
  }
  if (state == ControlLink::State::kClosed) return Fail(StatusCode::kUnavailable, "the peer closed the channel");
  const int problem = control_.problem();
  Fail(problem == 0 ? StatusCode::kProtocol : StatusCode::kUnavailable,
       problem == 0 ? "what came on the control connection is no frame" : std::strerror(problem));
}

bool TcpSender::OnPosted(const Control& frame) noexcept {
  if (slots_ == 1 || posted_size_ == posted_.size() || frame.count > slots_) return false;
  posted_[(posted_head_ + posted_size_++) % posted_.size()] = {frame, 0, 0};
  return true;
}

Outcome TcpSender::TakeSlot(std::int32_t tag, Bytes total) noexcept {
  if (posted_size_ == 0) {
    CheckControl(clock_.Now());
    if (!failure_.ok()) return Outcome::kFailed;
    if (posted_size_ == 0) return Outcome::kAgain;
  }
  Posted& head = posted_[posted_head_];
  for (std::uint32_t i = 0; i < head.frame.count; ++i) {
    const Control::Posted& slot = head.frame.slots[i];
    if ((head.taken_mask & (1u << i)) != 0 || (slot.tag != tag && head.frame.count > 1)) continue;
    if (total > slot.capacity) {
      Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
      return Outcome::kFailed;
    }
    head.taken_mask |= 1u << i;
    if (++head.taken == head.frame.count) {
      posted_head_ = (posted_head_ + 1) % posted_.size();
      posted_size_--;
    }
    return Outcome::kDone;
  }
  Progress();  // Nothing else may be calling it, and the receive is completed by what is under way.
  return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
}

}  // namespace weir::transport::tcp
