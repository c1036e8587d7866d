#include "transport/tcp/listener.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/tcp/connector.h"
#include "transport/tcp/receiver.h"

namespace weir::transport::tcp {

Result<std::unique_ptr<TcpListener>> TcpListener::Start(const TcpOptions& options, const Interface& device,
                                                        std::uint32_t slots, const Clock* clock) {
  std::unique_ptr<TcpListener> listener(new TcpListener);
  listener->options_ = options;
  listener->slots_ = slots;
  listener->clock_ = clock;
  auto socket = ListenOn(device.address, device.index, &listener->place_.port);
  if (!socket) return tl::unexpected(socket.error());
  listener->acceptor_ = Acceptor(std::move(*socket));
  listener->place_.address = device.address;
  listener->place_.identity = options.identity;
  if (Status drawn = Draw(&listener->place_.nonce); !drawn.ok()) return tl::unexpected(drawn);
  listener->handle_ = EncodeHandle(listener->place_);
  return listener;
}

Result<std::unique_ptr<Receiver>> TcpListener::Accept() {
  if (Status taken = TakeNew(); !taken.ok()) return tl::unexpected(taken);
  for (std::size_t i = 0; i < pending_.size();) {
    if (Read(&pending_[i]) == Next::kWait) {
      ++i;
    } else {
      std::swap(pending_[i], pending_.back());
      pending_.pop_back();
    }
  }
  if (candidate_.empty()) return nullptr;
  if (missing_ == 0) return Finish();
  DropLostCandidate();
  return nullptr;
}

Status TcpListener::TakeNew() {
  while (pending_.size() < kPendingMax) {
    Pending pending;
    auto socket = acceptor_.Next(clock_->Now(), &pending.peer);
    if (!socket) return socket.error();
    if (!*socket) break;
    pending.socket = std::move(*socket);
    pending.deadline = clock_->Now() + kGreetWithin;
    pending_.push_back(std::move(pending));
  }
  return Status::Ok();
}

TcpListener::Next TcpListener::Read(Pending* pending) {
  const ssize_t got = recv(pending->socket.get(), pending->bytes.data() + pending->got,
                           pending->bytes.size() - pending->got, MSG_DONTWAIT);
  if (got > 0) pending->got += static_cast<std::size_t>(got);
  if (pending->got >= kPrefixBytes) {
    const auto version = GreetingVersion(std::span<const std::byte, kPrefixBytes>(pending->bytes.data(), kPrefixBytes));
    if (!version) {
      Refuse(*pending, Verdict::kMalformed, Nonce{}, version.error().message());
      return Next::kDrop;
    }
    if (*version != kVersion) {
      Refuse(*pending, Verdict::kOtherVersion, Nonce{},
             fmt::format("it speaks version {}, we speak {}", *version, kVersion));
      return Next::kDrop;
    }
  }
  if (pending->got == pending->bytes.size()) return Greet(pending);
  const bool closed = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (!closed && clock_->Now() < pending->deadline) return Next::kWait;
  refused_++;
  last_refusal_ = fmt::format("{} refused {}: it {} after {} of {} bytes of a greeting", options_.identity,
                              pending->peer, closed ? "closed" : "was silent", pending->got, pending->bytes.size());
  return Next::kDrop;
}

TcpListener::Next TcpListener::Greet(Pending* pending) {
  const auto hello = DecodeHello(pending->bytes);
  if (!hello) {
    Refuse(*pending, Verdict::kMalformed, Nonce{}, hello.error().message());
    return Next::kDrop;
  }
  if (hello->listener != place_.nonce) {
    Refuse(*pending, Verdict::kOtherListener, hello->channel,
           fmt::format("{} does not have our handle", hello->identity));
    return Next::kDrop;
  }
  if (candidate_.empty()) {
    channel_ = hello->channel;
    candidate_ = fmt::format("{} ({})", hello->identity, pending->peer);
    candidate_deadline_ = clock_->Now() + kGreetWithin;
    streams_.clear();
    streams_.resize(hello->streams + std::size_t{1});
    missing_ = streams_.size();
  }
  if (hello->channel != channel_) {
    Refuse(*pending, Verdict::kTaken, hello->channel, fmt::format("{} comes after {}", hello->identity, candidate_));
    return Next::kDrop;
  }
  if (hello->streams + std::size_t{1} != streams_.size() || streams_[hello->stream]) {
    Refuse(*pending, Verdict::kMalformed, hello->channel,
           fmt::format("{} greets twice as stream {} of {}", hello->identity, hello->stream, hello->streams));
    return Next::kDrop;
  }
  if (!Answer(pending->socket, Verdict::kWelcome, channel_)) return Next::kDrop;
  streams_[hello->stream] = std::move(pending->socket);
  missing_--;
  return Next::kTaken;
}

void TcpListener::Refuse(const Pending& pending, Verdict verdict, const Nonce& channel, const std::string& why) {
  refused_++;
  last_refusal_ = fmt::format("{} refused {}: {}", options_.identity, pending.peer, why);
  // It may have gone already: then nobody misses the answer.
  static_cast<void>(Answer(pending.socket, verdict, channel));
}

bool TcpListener::Answer(const Socket& socket, Verdict verdict, const Nonce& channel) {
  const auto bytes = EncodeWelcome({verdict, static_cast<std::uint8_t>(slots_), channel, options_.identity});
  return send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

/// One that greeted on some connections and died must not keep out the one that comes after it.
void TcpListener::DropLostCandidate() {
  const bool lost = std::any_of(streams_.begin(), streams_.end(), [](const Socket& socket) {
    std::byte byte;
    return socket && recv(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  });
  if (!lost && clock_->Now() < candidate_deadline_) return;
  refused_++;
  last_refusal_ = fmt::format("{} gave up on {}: {} of {} connections did not come", options_.identity, candidate_,
                              missing_, streams_.size());
  candidate_.clear();
  streams_.clear();
}

std::unique_ptr<Receiver> TcpListener::Finish() {
  TcpReceiver::Made made;
  made.options = options_;
  made.ends = {fmt::format("{} ({})", options_.identity, SocketAddress::OwnOf(streams_.front()).ToString()),
               candidate_};
  made.slots = slots_;
  made.clock = clock_;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Tune(streams_[i], i == 0 ? StreamKind::kControl : StreamKind::kData, options_);
    if (i == 0) {
      made.control = std::move(streams_[i]);
    } else {
      made.streams.push_back(std::move(streams_[i]));
    }
  }
  candidate_.clear();
  streams_.clear();
  return std::make_unique<TcpReceiver>(std::move(made));
}

}  // namespace weir::transport::tcp
