#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "coflow/wire/frame.h"
#include "coflow/wire/weir.pb.h"

namespace weir::agents {

/// A coordinator that says what a test tells it to. Blocking, with patience.
class FakeCoordinator {
 public:
  static constexpr int kPatience_ms = 10'000;

  FakeCoordinator() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  FakeCoordinator(const FakeCoordinator&) = delete;
  FakeCoordinator& operator=(const FakeCoordinator&) = delete;
  ~FakeCoordinator() {
    Hang();
    close(listener_);
  }

  const std::string& address() const { return address_; }

  /// Waits for the agent and its Hello, and welcomes it.
  wire::Hello Welcome(std::uint64_t epoch) {
    Hang();
    EXPECT_TRUE(Readable(listener_));
    agent_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int on = 1;
    setsockopt(agent_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const wire::AgentMessage first = Next([](const wire::AgentMessage&) { return true; });
    EXPECT_TRUE(first.has_hello());
    wire::CoordinatorMessage message;
    message.mutable_welcome()->set_epoch(epoch);
    message.mutable_welcome()->set_ttl_ms(60'000);
    Say(message);
    epoch_ = epoch;
    sequence_ = 0;
    return first.hello();
  }
  void Hang() {
    if (agent_ >= 0) close(agent_);
    agent_ = -1;
    inbox_.clear();
  }
  void Say(const wire::CoordinatorMessage& message) {
    std::string frame;
    wire::AppendFrame(message.SerializeAsString(), &frame);
    EXPECT_EQ(send(agent_, frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
  }
  void SayRaw(const std::string& bytes) { static_cast<void>(send(agent_, bytes.data(), bytes.size(), MSG_NOSIGNAL)); }
  void Direct(std::uint64_t lane, wire::Gate gate, double rate, std::uint32_t level = 0) {
    wire::CoordinatorMessage message;
    message.mutable_schedule()->set_epoch(epoch_);
    message.mutable_schedule()->set_sequence(++sequence_);
    wire::Directive* directive = message.mutable_schedule()->add_directives();
    directive->set_lane(lane);
    directive->set_gate(gate);
    directive->set_rate(rate);
    directive->set_level(level);
    Say(message);
  }
  /// The next message that `wanted` accepts; an empty one, and a failure, if none comes in time.
  wire::AgentMessage Next(const std::function<bool(const wire::AgentMessage&)>& wanted) {
    while (true) {
      auto frame = wire::NextFrame(inbox_);
      EXPECT_TRUE(frame);
      if (!frame) return {};
      if (frame->complete) {
        wire::AgentMessage message;
        EXPECT_TRUE(message.ParseFromArray(frame->payload.data(), static_cast<int>(frame->payload.size())));
        inbox_.erase(0, frame->size);
        if (wanted(message)) return message;
        continue;
      }
      std::array<char, 4096> buffer;
      const ssize_t got = Readable(agent_) ? recv(agent_, buffer.data(), buffer.size(), 0) : 0;
      if (got <= 0) {
        ADD_FAILURE() << "the agent said nothing more";
        return {};
      }
      inbox_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  static bool Readable(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    return poll(&waiting, 1, kPatience_ms) == 1;
  }

  int listener_ = -1;
  int agent_ = -1;
  std::string address_;
  std::string inbox_;
  std::uint64_t epoch_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace weir::agents
