#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/clock.h"
#include "transport/tcp/interfaces.h"
#include "transport/tcp/options.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace weir::transport::tcp {

/// Waits on one port for the connections of one channel. Whoever does not greet as the handle demands is told so if it
/// speaks our language, closed, and counted; it never holds up the one that is meant. Owned by whoever listens.
///
/// Limits: kPendingMax connections that have not greeted yet, each for kGreetWithin.
class TcpListener final : public Listener {
 public:
  static constexpr std::size_t kPendingMax = 64;
  static constexpr Nanoseconds kGreetWithin = 20 * kSecond;  ///< Enough for a SYN that is lost four times.

  static Result<std::unique_ptr<TcpListener>> Start(const TcpOptions& options, const Interface& device,
                                                    std::uint32_t slots, const Clock* clock);
  const Handle& handle() const override { return handle_; }
  Result<std::unique_ptr<Receiver>> Accept() override;

  std::uint64_t refused() const { return refused_; }
  /// Why the last one was refused, with both names; empty when none was.
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  /// A connection that has not greeted yet.
  struct Pending {
    Socket socket;
    std::string peer;
    Nanoseconds deadline = 0;
    std::size_t got = 0;
    std::array<std::byte, kHelloBytes> bytes{};
  };
  enum class Next { kWait, kDrop, kTaken };

  TcpListener() = default;
  Status TakeNew();
  Next Read(Pending* pending);
  Next Greet(Pending* pending);
  void Refuse(const Pending& pending, Verdict verdict, const Nonce& channel, const std::string& why);
  bool Answer(const Socket& socket, Verdict verdict, const Nonce& channel);
  void DropLostCandidate();
  std::unique_ptr<Receiver> Finish();

  TcpOptions options_;
  std::uint32_t slots_ = 1;
  const Clock* clock_ = nullptr;
  Acceptor acceptor_;
  Place place_;
  Handle handle_;
  std::vector<Pending> pending_;
  // The channel that greeted first: its connections so far, by stream.
  Nonce channel_{};
  std::string candidate_;  ///< Its identity and address; empty: none.
  Nanoseconds candidate_deadline_ = 0;
  std::vector<Socket> streams_;
  std::size_t missing_ = 0;
  std::uint64_t refused_ = 0;
  std::string last_refusal_;
};

}  // namespace weir::transport::tcp
