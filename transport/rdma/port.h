#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coflow/ip_address.h"
#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/rdma/gid.h"
#include "transport/rdma/options.h"
#include "transport/rdma/registrations.h"
#include "transport/rdma/verbs.h"

namespace weir::transport::rdma {

/// What a device allows, as far as it matters here.
struct PortLimits {
  std::uint32_t parts = 0;          ///< Pieces of memory of one request.
  std::uint32_t requests = 0;       ///< Of a queue.
  std::uint32_t completions = 0;    ///< Of a queue.
  std::uint32_t rate_kbps_max = 0;  ///< Of a queue pair that the device paces; 0: it does not.
  std::uint32_t rate_kbps_min = 0;
};

/// A port of an RDMA device that was opened, with what all its channels share: protection domain, registrations, and
/// what happened to it. Owned by the transport. Choose and TakeEvents may be called by any thread; the rest does not
/// change.
class Port {
 public:
  /// Errors: kUnsupported with what the device refused.
  static Result<std::unique_ptr<Port>> Open(const Verbs* verbs, ibv_device* device, std::uint8_t number,
                                            const RdmaOptions* options);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  const Verbs& verbs() const { return *verbs_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  /// "mlx5_0:1".
  const std::string& name() const { return name_; }
  std::uint8_t number() const { return number_; }
  bool ethernet() const { return ethernet_; }
  std::uint16_t lid() const { return lid_; }  ///< InfiniBand only.
  ibv_mtu mtu() const { return mtu_; }
  BytesPerSecond speed() const { return speed_; }
  const PortLimits& limits() const { return limits_; }
  bool takes_dma_buf() const { return registrations_->takes_dma_buf(); }
  Registrations& registrations() { return *registrations_; }

  /// The address to use, for a peer if it is known, from the table as it is now; noted when it is another than before.
  /// Errors as ChooseGid.
  Result<GidChoice> Choose(const std::optional<IpAddress>& peer);
  /// Looks what has happened to the device. Does nothing while another thread does.
  void TakeEvents();
  /// False once the device is gone for good.
  bool alive() const { return alive_.load(std::memory_order_relaxed); }

 private:
  Port(const Verbs* verbs, const RdmaOptions* options) : verbs_(verbs), options_(options) {}
  Status Examine();
  Status ReadLimits();
  Result<std::vector<GidEntry>> ReadTable() const;
  void Note(const std::string& what) const;
  void OnEvent(const ibv_async_event& event);

  const Verbs* verbs_;
  const RdmaOptions* options_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  std::string name_;
  std::uint8_t number_ = 1;
  bool ethernet_ = false;
  std::uint16_t lid_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  BytesPerSecond speed_ = 0;
  PortLimits limits_;
  std::unique_ptr<Registrations> registrations_;
  std::atomic<bool> alive_{true};

  std::mutex mutex_;  ///< Guards what follows, and the reading of events.
  std::string last_choice_;
};

/// Opens every port that the rule takes and that is up. Error kUnsupported when there is no device; kNotFound when
/// none fits, with those that there are and why not.
Result<std::vector<std::unique_ptr<Port>>> OpenPorts(const Verbs* verbs, const RdmaOptions* options);

/// Bytes per second of a port's speed and width, as verbs number them; 0 for what is not known. Pure.
BytesPerSecond SpeedOf(std::uint8_t speed, std::uint8_t width);

}  // namespace weir::transport::rdma
