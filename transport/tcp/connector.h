#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/clock.h"
#include "transport/pacer/pacer.h"
#include "transport/tcp/interfaces.h"
#include "transport/tcp/options.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace weir::transport::tcp {

/// Opens the connections of a channel, greets on each, and waits to be welcomed on all. Owned by whoever connects.
class TcpConnector final : public Connector {
 public:
  /// Errors as Transport::Connect, and those of making sockets.
  static Result<std::unique_ptr<Connector>> Start(const TcpOptions& options, const Interface& device,
                                                  const Place& place, Lane* lane, const Clock* clock);
  Result<std::unique_ptr<Sender>> Poll() override;

 private:
  struct Link {
    Socket socket;
    bool greeted = false;
    bool welcomed = false;
    std::size_t got = 0;
    std::array<std::byte, kWelcomeBytes> answer{};
  };

  TcpConnector(const TcpOptions& options, const Place& place, Lane* lane, const Clock* clock);
  Status PollLink(std::size_t stream);
  Status ReadWelcome(Link* link);
  Status Judge(const Welcome& welcome);
  std::unique_ptr<Sender> Finish();
  std::string Peer() const;

  TcpOptions options_;
  Place place_;
  Lane* lane_;
  const Clock& clock_;
  Nanoseconds deadline_;
  Nonce channel_{};
  std::uint8_t slots_ = 1;
  std::vector<Link> links_;  ///< Control, then data.
};

/// Fills `nonce` with bytes that nobody can guess. Error kUnsupported.
Status Draw(Nonce* nonce);

}  // namespace weir::transport::tcp
