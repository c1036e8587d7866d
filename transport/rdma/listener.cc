#include "transport/rdma/listener.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "transport/rdma/side.h"
#include "transport/tcp/connector.h"

namespace weir::transport::rdma {
namespace {

template <std::size_t kSize>
bool Say(const tcp::Socket& socket, const std::array<std::byte, kSize>& bytes) {
  return send(socket.get(), bytes.data(), kSize, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(kSize);
}

}  // namespace

Result<std::unique_ptr<RdmaListener>> RdmaListener::Start(const RdmaOptions& options, Port* port, std::uint32_t slots,
                                                          const Clock* clock) {
  std::unique_ptr<RdmaListener> listener(new RdmaListener(options, port, slots, clock));
  const auto choice = port->Choose({});
  if (!choice) return tl::unexpected(choice.error());
  listener->own_ = choice->entry;
  const auto side = SideInterface(*port, choice->entry, options);
  if (!side) return tl::unexpected(side.error());
  auto socket = tcp::ListenOn(side->address, side->index, &listener->place_.port);
  if (!socket) return tl::unexpected(socket.error());
  listener->acceptor_ = tcp::Acceptor(std::move(*socket));
  listener->place_.address = side->address;
  listener->place_.identity = options.identity;
  if (Status drawn = tcp::Draw(&listener->place_.nonce); !drawn.ok()) return tl::unexpected(drawn);
  listener->handle_ = EncodeHandle(listener->place_);
  return listener;
}

Result<std::unique_ptr<Receiver>> RdmaListener::Accept() {
  if (Status taken = TakeNew(); !taken.ok()) return tl::unexpected(taken);
  for (std::size_t i = 0; i < pending_.size();) {
    if (Read(&pending_[i]) == Next::kWait) {
      ++i;
    } else {
      std::swap(pending_[i], pending_.back());
      pending_.pop_back();
    }
  }
  if (candidate_ == nullptr) return nullptr;
  Candidate& candidate = *candidate_;
  if (!ReadSide(candidate.socket, candidate.bytes, &candidate.got)) {
    GiveUp("it closed before it was through with greeting");
  } else if (candidate.got == candidate.bytes.size()) {
    return Attach();
  } else if (clock_.Now() >= candidate.deadline) {
    GiveUp("it did not get through with greeting in time");
  }
  return nullptr;
}

Status RdmaListener::TakeNew() {
  while (pending_.size() < kPendingMax) {
    Pending pending;
    auto socket = acceptor_.Next(clock_.Now(), &pending.peer);
    if (!socket) return socket.error();
    if (!*socket) break;
    pending.socket = std::move(*socket);
    pending.deadline = clock_.Now() + kGreetWithin;
    pending_.push_back(std::move(pending));
  }
  return Status::Ok();
}

RdmaListener::Next RdmaListener::Read(Pending* pending) {
  const bool open = ReadSide(pending->socket, pending->bytes, &pending->got);
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
  if (pending->got == pending->bytes.size()) {
    Greet(pending);
    return Next::kDrop;
  }
  if (open && clock_.Now() < pending->deadline) return Next::kWait;
  refused_++;
  last_refusal_ = fmt::format("{} refused {}: it {} after {} of {} bytes of a greeting", options_.identity,
                              pending->peer, open ? "was silent" : "closed", pending->got, pending->bytes.size());
  return Next::kDrop;
}

void RdmaListener::Greet(Pending* pending) {
  const auto hello = DecodeHello(pending->bytes);
  if (!hello) return Refuse(*pending, Verdict::kMalformed, Nonce{}, hello.error().message());
  const auto refuse = [&](Verdict verdict, const std::string& why) {
    Refuse(*pending, verdict, hello->channel, hello->identity + " " + why);
  };
  if (hello->listener != place_.nonce) return refuse(Verdict::kOtherListener, "does not have our handle");
  if (candidate_ != nullptr) return refuse(Verdict::kTaken, "comes after " + candidate_->name);
  if (hello->ethernet != port_.ethernet()) return refuse(Verdict::kOtherLink, "is on another kind of link");
  auto candidate = std::make_unique<Candidate>();
  if (Status status = Prepare(*hello, candidate.get()); !status.ok()) {
    return refuse(Verdict::kNoRoom, "wants more than there is room for: " + status.message());
  }
  Welcome welcome{Verdict::kWelcome,
                  static_cast<std::uint8_t>(slots_),
                  candidate->mtu,
                  options_.requests,
                  hello->channel,
                  options_.identity,
                  {}};
  candidate->queues->Describe(own_, &welcome.end);
  welcome.end.memory_address = reinterpret_cast<std::uint64_t>(candidate->records->data());
  welcome.end.memory_key = candidate->records->memory().rkey;
  if (!Say(pending->socket, EncodeWelcome(welcome))) return;  // It has gone already.
  candidate->socket = std::move(pending->socket);
  candidate->name = fmt::format("{} ({})", hello->identity, pending->peer);
  candidate->deadline = clock_.Now() + kGreetWithin;
  candidate_ = std::move(candidate);
}

Status RdmaListener::Prepare(const Hello& hello, Candidate* candidate) {
  const std::uint32_t pairs = hello.queue_pairs * std::uint32_t{hello.classes};
  QueuePlan plan;
  plan.pairs = hello.queue_pairs;
  plan.classes = hello.classes;
  plan.traffic_classes = hello.traffic_classes;
  plan.service_level = hello.service_level;
  plan.first_depth = AdvertiseDepth(options_.requests);
  plan.incoming = options_.requests * slots_ * pairs;
  candidate->mtu = std::min(hello.mtu, static_cast<std::uint8_t>(port_.mtu()));
  auto queues = Queues::Make(&port_, plan);
  if (!queues) return queues.error();
  auto records =
      Room::Make(&port_, std::size_t{options_.requests} * slots_ * kRecordBytes, Registrations::Use::kReceive);
  if (!records) return records.error();
  auto copy = Room::Make(&port_, options_.requests * kPostedStride, Registrations::Use::kSend);
  if (!copy) return copy.error();
  candidate->queues = std::move(*queues);
  candidate->records = std::move(*records);
  candidate->ring_copy = std::move(*copy);
  return Status::Ok();
}

void RdmaListener::Refuse(const Pending& pending, Verdict verdict, const Nonce& channel, const std::string& why) {
  refused_++;
  last_refusal_ = fmt::format("{} refused {}: {}", options_.identity, pending.peer, why);
  Welcome refusal;
  refusal.verdict = verdict;
  refusal.channel = channel;
  refusal.identity = options_.identity;
  // It may have gone already: then nobody misses the answer.
  static_cast<void>(Say(pending.socket, EncodeWelcome(refusal)));
}

/// One that greeted and died must not keep out the one that comes after it.
void RdmaListener::GiveUp(const std::string& why) {
  refused_++;
  last_refusal_ = fmt::format("{} gave up on {}: {}", options_.identity, candidate_->name, why);
  candidate_.reset();
}

Result<std::unique_ptr<Receiver>> RdmaListener::Attach() {
  const auto end = DecodeAttach(candidate_->bytes);
  Status status = end ? candidate_->queues->Connect(own_, *end, candidate_->mtu, options_) : end.error();
  if (!status.ok()) {
    GiveUp(status.message());
    return nullptr;
  }
  TuneSide(candidate_->socket, options_);
  Made made;
  made.options = options_;
  made.ends = {options_.identity, candidate_->name};
  made.port = &port_;
  made.own = own_;
  made.mtu = candidate_->mtu;
  made.queues = std::move(candidate_->queues);
  made.incoming = std::move(candidate_->records);
  made.outgoing = std::move(candidate_->ring_copy);
  made.side = std::move(candidate_->socket);
  made.peer = *end;
  made.slots = slots_;
  made.clock = &clock_;
  candidate_.reset();
  return std::make_unique<RdmaReceiver>(std::move(made));
}

}  // namespace weir::transport::rdma
