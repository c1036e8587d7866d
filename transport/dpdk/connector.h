#pragma once

#include <memory>
#include <string>

#include "transport/dpdk/endpoint.h"
#include "transport/pacer/pacer.h"
#include "transport/transport.h"

namespace weir::transport::dpdk {

/// Says hello until the listener answers. Owned by whoever connects.
class PacketConnector final : public Connector, private ChannelEnd {
 public:
  /// Under the endpoint's guard.
  PacketConnector(Endpoint* endpoint, const Place& place, Lane* lane);
  ~PacketConnector() override;
  Result<std::unique_ptr<Sender>> Poll() override;

 private:
  void OnPacket(const Header& header, const Datagram& datagram, Nanoseconds now) noexcept override;
  void OnOtherVersion() noexcept override;
  void AfterBurst(Nanoseconds) noexcept override {}
  Nanoseconds OnTick(Nanoseconds) noexcept override { return Endpoint::kNever; }
  void Beat() noexcept override {}
  void Leave() noexcept override {}

  Status Judge(const Greeting& welcome) const;
  void SayHello() noexcept;
  /// Whether the next hop is known; asks when it is time to.
  bool FindNextHop(Nanoseconds now) noexcept;
  tl::unexpected<Status> Problem(const Status& status) const;

  Place place_;
  Lane* lane_;
  Nonce nonce_;
  Nanoseconds deadline_;
  bool asks_ = false;  ///< For the next hop, until
  Nanoseconds asks_until_ = 0;
  std::uint32_t asked_ = 0;  ///< So often.
  Nanoseconds again_at_ = 0;
  Nanoseconds wait_;
  bool answered_ = false;
  Greeting welcome_;
  Status verdict_;
};

}  // namespace weir::transport::dpdk
