#pragma once

#include <memory>
#include <string>

#include "transport/dpdk/endpoint.h"
#include "transport/dpdk/receiver.h"
#include "transport/transport.h"

namespace weir::transport::dpdk {

/// Waits for the hello of one channel. Whoever does not greet as the handle demands is refused and counted. Owned by
/// whoever listens.
class PacketListener final : public Listener {
 public:
  PacketListener(Endpoint* endpoint, std::uint32_t slots);
  ~PacketListener() override;
  const Handle& handle() const override { return handle_; }
  Result<std::unique_ptr<Receiver>> Accept() override;

  /// A hello with our nonce.
  void Greet(const Greeting& hello, const Datagram& datagram, Nanoseconds now);

 private:
  Endpoint& endpoint_;
  std::uint32_t slots_;
  Nonce nonce_{};
  Handle handle_;
  std::unique_ptr<PacketReceiver> receiver_;  ///< Greeted, not taken yet.
  Nonce taken_{};                             ///< The channel that was taken; zeros: none.
};

}  // namespace weir::transport::dpdk
