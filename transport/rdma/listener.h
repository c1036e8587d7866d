#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/clock.h"
#include "transport/rdma/receiver.h"
#include "transport/rdma/wire.h"
#include "transport/tcp/socket.h"
#include "transport/transport.h"

namespace weir::transport::rdma {

/// Waits on one port for the side connection of one channel, and makes the queue pairs that it asks for. Whoever does
/// not greet as the handle demands is told so if it speaks our language, closed, and counted; it never holds up the one
/// that is meant. Owned by whoever listens.
///
/// Limits: kPendingMax connections that have not greeted yet, each for kGreetWithin.
class RdmaListener final : public Listener {
 public:
  static constexpr std::size_t kPendingMax = 64;
  static constexpr Nanoseconds kGreetWithin = 20 * kSecond;

  static Result<std::unique_ptr<RdmaListener>> Start(const RdmaOptions& options, Port* port, std::uint32_t slots,
                                                     const Clock* clock);
  const Handle& handle() const override { return handle_; }
  Result<std::unique_ptr<Receiver>> Accept() override;

  std::uint64_t refused() const { return refused_; }
  /// Why the last one was refused, with both names; empty when none was.
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  /// A connection that has not greeted yet.
  struct Pending {
    tcp::Socket socket;
    std::string peer;
    Nanoseconds deadline = 0;
    std::size_t got = 0;
    std::array<std::byte, kHelloBytes> bytes{};
  };
  /// The one that was welcomed, until it has said where its own queue pairs are.
  struct Candidate {
    tcp::Socket socket;
    std::string name;
    Nanoseconds deadline = 0;
    std::size_t got = 0;
    std::array<std::byte, kAttachBytes> bytes{};
    std::uint8_t mtu = 0;
    std::unique_ptr<Queues> queues;
    std::unique_ptr<Room> records;
    std::unique_ptr<Room> ring_copy;
  };
  enum class Next { kWait, kDrop };

  RdmaListener(const RdmaOptions& options, Port* port, std::uint32_t slots, const Clock* clock)
      : options_(options), port_(*port), slots_(slots), clock_(*clock) {}
  Status TakeNew();
  Next Read(Pending* pending);
  void Greet(Pending* pending);
  Status Prepare(const Hello& hello, Candidate* candidate);
  void Refuse(const Pending& pending, Verdict verdict, const Nonce& channel, const std::string& why);
  void GiveUp(const std::string& why);
  Result<std::unique_ptr<Receiver>> Attach();

  RdmaOptions options_;
  Port& port_;
  std::uint32_t slots_;
  const Clock& clock_;
  GidEntry own_;
  tcp::Acceptor acceptor_;
  Place place_;
  Handle handle_;
  std::vector<Pending> pending_;
  std::unique_ptr<Candidate> candidate_;
  std::uint64_t refused_ = 0;
  std::string last_refusal_;
};

}  // namespace weir::transport::rdma
