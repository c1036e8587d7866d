#pragma once

#include <array>
#include <memory>
#include <string>

#include "transport/clock.h"
#include "transport/rdma/sender.h"
#include "transport/rdma/wire.h"
#include "transport/tcp/interfaces.h"
#include "transport/tcp/socket.h"
#include "transport/transport.h"

namespace weir::transport::rdma {

/// Opens the side connection of a channel, greets, is welcomed, and makes the queue pairs. Owned by whoever connects.
class RdmaConnector final : public Connector {
 public:
  /// Errors as Transport::Connect, and those of making a socket.
  static Result<std::unique_ptr<Connector>> Start(const RdmaOptions& options, Port* port, const Place& place,
                                                  Lane* lane, const Clock* clock);
  Result<std::unique_ptr<Sender>> Poll() override;

 private:
  RdmaConnector(const RdmaOptions& options, Port* port, const Place& place, Lane* lane, const Clock* clock);
  Status Open();
  Status Greet();
  Status Judge(const Welcome& welcome) const;
  Result<std::unique_ptr<Sender>> Join(const Welcome& welcome);
  Result<std::unique_ptr<Sender>> Step();
  std::string Peer() const;

  RdmaOptions options_;
  Port& port_;
  Place place_;
  Lane* lane_;
  const Clock& clock_;
  Nanoseconds deadline_;
  Nonce channel_{};
  GidEntry own_;
  tcp::Socket socket_;
  bool greeted_ = false;
  std::size_t got_ = 0;
  std::array<std::byte, kWelcomeBytes> answer_{};
};

}  // namespace weir::transport::rdma
