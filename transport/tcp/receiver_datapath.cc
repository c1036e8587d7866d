// What the receiving end does for each message: no allocation, no lock, no log until the channel has failed.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/tcp/receiver.h"

namespace weir::transport::tcp {
namespace {

constexpr Nanoseconds kControlEvery = 100 * kMicrosecond;
/// A call ends after about so much, so that one channel does not keep its thread from the others.
constexpr Bytes kReadAtOnce = 4 * 1024 * 1024;

}  // namespace

Outcome TcpReceiver::Irecv(std::span<const Slot> slots, Request** request) noexcept {
  *request = nullptr;
  if (!failure_.ok()) return Outcome::kFailed;
  if (slots.empty() || slots.size() > slots_) {
    Fail(StatusCode::kInvalidArgument,
         "a receive has at least one slot, and at most as many as the listener was made for");
    return Outcome::kFailed;
  }
  if (free_.empty()) return Outcome::kAgain;
  if (slots_ > 1) {
    Control frame;
    frame.count = static_cast<std::uint32_t>(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) frame.slots[i] = {slots[i].tag, slots[i].capacity};
    if (!control_.Send(frame)) return Outcome::kAgain;
  }
  Receive* receive = free_.back();
  free_.pop_back();
  receive->count = static_cast<std::uint32_t>(slots.size());
  receive->matched = 0;
  receive->complete = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    receive->places[i] = {receive, static_cast<std::byte*>(slots[i].data), slots[i].capacity, slots[i].tag, false, 0, 0,
                          0};
  }
  unmatched_[(unmatched_head_ + unmatched_size_++) % unmatched_.size()] = receive;
  if (slots_ > 1) CheckControl(clock_.Now());
  *request = receive;
  return Outcome::kDone;
}

Outcome TcpReceiver::Test(Request* request, std::span<Bytes> sizes) noexcept {
  Receive* receive = static_cast<Receive*>(request);
  if (receive->complete < receive->count && failure_.ok()) Progress();
  if (receive->complete < receive->count) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), receive->count); ++i) {
    sizes[i] = receive->places[i].total;
  }
  free_.push_back(receive);
  return Outcome::kDone;
}

void TcpReceiver::Progress() noexcept {
  const Nanoseconds now = clock_.Now();
  if (now >= control_at_) CheckControl(now);
  Pump(&streams_[0]);
  for (std::size_t i = 1; i < streams_.size() && open_count_ > 0 && failure_.ok(); ++i) Pump(&streams_[i]);
  if (streams_[0].ended && failure_.ok()) JudgeEnds();
}

void TcpReceiver::Pump(Stream* stream) noexcept {
  Bytes budget = kReadAtOnce;
  while (failure_.ok()) {
    if (!stream->has_chunk && !NextChunk(stream)) return;
    if (stream->place == nullptr && !FindPlace(stream)) return;
    const Bytes before = stream->left;
    if (!TakePayload(stream)) return;
    const Bytes taken = before - stream->left;
    if (stream->left == 0) stream->has_chunk = false;
    if (taken >= budget) return;
    budget -= taken;
  }
}

bool TcpReceiver::NextChunk(Stream* stream) noexcept {
  while (stream->end - stream->begin < kChunkBytes) {
    Bytes got = 0;
    if (!Read(stream, nullptr, 0, &got)) return false;
  }
  const std::span<const std::byte, kChunkBytes> header(stream->ahead.data() + stream->begin, kChunkBytes);
  if (!DecodeChunk(header, &stream->chunk)) {
    Fail(StatusCode::kProtocol, "what came is no chunk of a message");
    return false;
  }
  stream->begin += kChunkBytes;
  stream->has_chunk = true;
  stream->left = stream->chunk.length;
  stream->place = nullptr;
  return true;
}

bool TcpReceiver::FindPlace(Stream* stream) noexcept {
  const Chunk& chunk = stream->chunk;
  if (chunk.offset == 0) return Begin(stream);
  const Open& open = open_[chunk.message % open_.size()];
  if (open.place == nullptr || open.message != chunk.message) {
    // Not begun yet: the first stream is behind this one. Begun and over: the sender is wrong.
    if (stream == streams_.data() || static_cast<std::int32_t>(chunk.message - next_message_) < 0) {
      Fail(StatusCode::kProtocol, "a chunk came of a message that is not under way");
    }
    return false;
  }
  if (chunk.total != open.place->total) {
    Fail(StatusCode::kProtocol, "two chunks of a message differ about its length");
    return false;
  }
  if (chunk.length > open.place->total - open.place->announced) {
    Fail(StatusCode::kProtocol, "more chunks of a message came than it has");
    return false;
  }
  open.place->announced += chunk.length;
  stream->place = open.place;
  return true;
}

bool TcpReceiver::Begin(Stream* stream) noexcept {
  const Chunk& chunk = stream->chunk;
  if (stream != streams_.data() || chunk.message != next_message_) {
    Fail(StatusCode::kProtocol, "messages do not begin in order");
    return false;
  }
  Open& open = open_[chunk.message % open_.size()];
  if (chunk.length < chunk.total && open.place != nullptr) return false;  // One of long ago is still under way.
  Place* place = Match(chunk.tag);
  if (place == nullptr) return false;
  if (chunk.total > place->capacity) {
    Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
    return false;
  }
  next_message_++;
  place->matched = true;
  place->total = chunk.total;
  place->announced = chunk.length;
  Receive* receive = place->receive;
  if (++receive->matched == receive->count) {
    unmatched_head_ = (unmatched_head_ + 1) % unmatched_.size();
    unmatched_size_--;
  }
  if (chunk.length < chunk.total) {
    open = {chunk.message, place};
    open_count_++;
  } else if (chunk.total == 0) {
    receive->complete++;
  }
  stream->place = place;
  return true;
}

TcpReceiver::Place* TcpReceiver::Match(std::int32_t tag) noexcept {
  if (unmatched_size_ == 0) return nullptr;
  Receive* receive = unmatched_[unmatched_head_];
  for (std::uint32_t i = 0; i < receive->count; ++i) {
    Place& place = receive->places[i];
    if (!place.matched && (receive->count == 1 || place.tag == tag)) return &place;
  }
  Fail(StatusCode::kProtocol, "a message has a tag that no open slot of the oldest receive has");
  return nullptr;
}

bool TcpReceiver::TakePayload(Stream* stream) noexcept {
  if (stream->left == 0) return true;
  std::byte* to = stream->place->data + stream->chunk.offset + (stream->chunk.length - stream->left);
  Bytes got = std::min<Bytes>(stream->left, stream->end - stream->begin);
  if (got > 0) {
    std::memcpy(to, stream->ahead.data() + stream->begin, got);
    stream->begin += got;
  } else if (!Read(stream, to, stream->left, &got)) {
    return false;
  }
  Account(stream, got);
  return true;
}

void TcpReceiver::Account(Stream* stream, Bytes bytes) noexcept {
  stream->left -= bytes;
  Place* place = stream->place;
  place->received += bytes;
  if (place->received < place->total) return;
  place->receive->complete++;
  Open& open = open_[stream->chunk.message % open_.size()];
  if (open.place != place) return;
  open.place = nullptr;
  open_count_--;
}

/// Reads to `data`, and past its end ahead. `got` is what went to `data`. False: nothing came.
bool TcpReceiver::Read(Stream* stream, std::byte* data, Bytes size, Bytes* got) noexcept {
  const std::size_t kept = stream->end - stream->begin;
  std::memmove(stream->ahead.data(), stream->ahead.data() + stream->begin, kept);
  stream->begin = 0;
  stream->end = kept;
  std::array<iovec, 2> pieces{iovec{data, size}, iovec{stream->ahead.data() + kept, stream->ahead.size() - kept}};
  msghdr message{};
  message.msg_iov = size > 0 ? pieces.data() : pieces.data() + 1;
  message.msg_iovlen = size > 0 ? 2 : 1;
  const ssize_t read = recvmsg(stream->socket.get(), &message, MSG_DONTWAIT);
  if (read > 0) {
    read_ += static_cast<Bytes>(read);
    *got = std::min<Bytes>(static_cast<Bytes>(read), size);
    stream->end += static_cast<std::size_t>(read) - *got;
    return true;
  }
  if (read < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (read < 0 && errno != ECONNRESET) {
    Fail(StatusCode::kUnavailable, std::strerror(errno));
    return false;
  }
  stream->ended = true;
  if (stream->has_chunk || kept > 0) Fail(StatusCode::kUnavailable, "the peer closed the channel within a message");
  return false;
}

void TcpReceiver::JudgeEnds() noexcept {
  const bool all = std::all_of(streams_.begin(), streams_.end(), [](const Stream& stream) { return stream.ended; });
  if (open_count_ == 0 || all) Fail(StatusCode::kUnavailable, "the peer closed the channel");
}

/// A peer that closed may have sent messages before, and the streams end after them. One that closed the control
/// connection and then says nothing on the others is not waited for.
void TcpReceiver::JudgeQuiet(Nanoseconds now) noexcept {
  if (quiet_since_ == 0 || read_ != read_when_closed_) {
    quiet_since_ = now;
    read_when_closed_ = read_;
  }
  if (now - quiet_since_ > options_.dead_after)
    Fail(StatusCode::kUnavailable, "the peer closed the control connection");
}

void TcpReceiver::CheckControl(Nanoseconds now) noexcept {
  control_at_ = now + kControlEvery;
  const ControlLink::State state = control_.Poll(now, [](const Control&) { return false; });
  if (state == ControlLink::State::kOpen) {
    if (control_.Dead(now, streams_))
      Fail(StatusCode::kUnavailable, "the link is dead: nothing came back within the bound");
    return;
  }
  if (state == ControlLink::State::kClosed) return JudgeQuiet(now);
  const int problem = control_.problem();
  Fail(problem == 0 ? StatusCode::kProtocol : StatusCode::kUnavailable,
       problem == 0 ? "what came on the control connection is no frame" : std::strerror(problem));
}

}  // namespace weir::transport::tcp
