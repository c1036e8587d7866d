// Opening and closing a port.
#include "transport/dpdk/ethdev/port.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "transport/dpdk/ethdev/eal.h"
#include "transport/dpdk/ethdev/interrupts.h"
#include "transport/dpdk/ethdev/pool.h"

namespace weir::transport::dpdk {
namespace {

constexpr std::size_t kMtuMin = kFrameBytesMin - 14;
constexpr std::size_t kMtuMax = 9000;
constexpr std::uint32_t kDescriptorsMax = 4096;
constexpr unsigned kDriverKeeps = 2 * 2048 + 512;

std::recursive_mutex& SetupMutex() {
  static std::recursive_mutex mutex;  // DPDK's setup is for one thread; opening may end in closing.
  return mutex;
}

Status Problem(const std::string& device, const char* what, int error) {
  return Status(error == -EPERM || error == -EACCES ? StatusCode::kPermissionDenied : StatusCode::kUnavailable,
                fmt::format("device \"{}\": {}: {}", device, what, rte_strerror(-error)));
}

Status CheckSettings(const EthdevSettings& settings) {
  const auto wrong = [](const char* what, const auto& found, const std::string& allowed) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: {}", what, found, allowed));
  };
  if (!settings.device.starts_with("net_") && !IsPci(settings.device)) {
    return wrong("device", '"' + settings.device + '"',
                 "net_DRIVERn,ARGUMENT=VALUE,... or an address on the PCI bus as in 0000:00:05.0");
  }
  if (settings.mtu != 0 && (settings.mtu < kMtuMin || settings.mtu > kMtuMax)) {
    return wrong("mtu", settings.mtu, fmt::format("{} to {}", kMtuMin, kMtuMax));
  }
  if (settings.descriptors < 64 || settings.descriptors > kDescriptorsMax) {
    return wrong("descriptors", settings.descriptors, fmt::format("64 to {}", kDescriptorsMax));
  }
  if (settings.memory_mb < 16 || settings.memory_mb > 65'536) {
    return wrong("memory_mb", settings.memory_mb, "16 to 65536");
  }
  return Status::Ok();
}

/// Of "net_memif0,role=client": the role. Empty where there is none.
std::string Argument(const std::string& device, const std::string& key) {
  const std::size_t at = device.find("," + key + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return device.substr(begin, device.find(',', begin) - begin);
}

}  // namespace

Result<std::unique_ptr<EthdevPort>> RtePort::Open(const EthdevSettings& settings) {
  if (Status status = CheckSettings(settings); !status.ok()) return tl::unexpected(status);
  const std::lock_guard lock(SetupMutex());
  if (Status status = StartEal(settings.device, settings.memory_mb); !status.ok()) return tl::unexpected(status);
  const auto number = PlugIn(settings.device);
  if (!number) return tl::unexpected(number.error());
  std::unique_ptr<RtePort> port(new RtePort);
  PortTurns::StopInForks();
  port->owner_ = getpid();
  port->device_ = settings.device;
  port->port_ = *number;
  Status status = port->Configure(settings);
  if (status.ok()) return port;
  return tl::unexpected(status);
}

Status RtePort::Configure(const EthdevSettings& settings) {
  rte_eth_dev_info info{};
  if (const int error = rte_eth_dev_info_get(port_, &info); error != 0) return Problem(device_, "no answer", error);
  driver_ = info.driver_name;
  rte_eth_conf configuration{};
  if (const int error = rte_eth_dev_configure(port_, 1, 1, &configuration); error != 0) {
    return Problem(device_, "cannot be configured", error);
  }
  if (Status status = ChooseMtu(settings.mtu, info.max_mtu); !status.ok()) return status;
  if (settings.mac != MacAddress{}) {
    rte_ether_addr address{};
    std::memcpy(address.addr_bytes, settings.mac.data(), settings.mac.size());
    // A driver that cannot change its address may still carry frames with ours: promiscuous mode, below.
    static_cast<void>(rte_eth_dev_default_mac_addr_set(port_, &address));
    mac_ = settings.mac;
  } else {
    rte_ether_addr address{};
    if (const int error = rte_eth_macaddr_get(port_, &address); error != 0)
      return Problem(device_, "no address", error);
    std::memcpy(mac_.data(), address.addr_bytes, mac_.size());
  }
  if (Status status = StartQueues(settings.descriptors); !status.ok()) return status;
  static_cast<void>(rte_eth_promiscuous_enable(port_));  // Where there is no such mode, everything comes anyway.
  return Status::Ok();
}

Status RtePort::ChooseMtu(std::size_t wanted, std::size_t device_max) {
  std::uint16_t current = 0;
  if (const int error = rte_eth_dev_get_mtu(port_, &current); error != 0) return Problem(device_, "no MTU", error);
  mtu_ = std::min<std::size_t>(current, kMtuMax);
  if (wanted == 0 || wanted == mtu_) return Status::Ok();
  const int error = rte_eth_dev_set_mtu(port_, static_cast<std::uint16_t>(wanted));
  if (error != 0 && wanted > mtu_) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("device \"{}\": mtu: found {}, allowed: up to {} ({})", device_, wanted,
                              device_max == 0 || device_max == UINT16_MAX ? mtu_ : device_max, rte_strerror(-error)));
  }
  mtu_ = wanted;  // A smaller one needs no help of the driver.
  return Status::Ok();
}

Status RtePort::StartQueues(std::uint32_t descriptors) {
  auto receive = static_cast<std::uint16_t>(descriptors);
  auto send = receive;
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive, &send); error != 0) {
    return Problem(device_, "queues", error);
  }
  const auto room = static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + std::max<std::size_t>(mtu_ + 64, 2048));
  // Both queues full, two bursts in our hands, and what drivers keep beside: af_xdp has two more queues, and takes back
  // what it sent only when it sends again, so a pool that runs dry would stay so.
  const unsigned count = receive + send + 4u * kBurst + kDriverKeeps;
  const PoolLayout layout = IsPci(device_)            ? PoolLayout::kDevice
                            : driver_ == "net_af_xdp" ? PoolLayout::kPaged
                                                      : PoolLayout::kPacked;
  pool_ = MakePool(fmt::format("weir{}", port_), count, room, layout);
  if (pool_ == nullptr) return Problem(device_, "memory for packets; raise memory_mb", -rte_errno);
  int error = rte_eth_rx_queue_setup(port_, 0, receive, 0, nullptr, pool_);
  if (error == 0) error = rte_eth_tx_queue_setup(port_, 0, send, 0, nullptr);
  asks_ = driver_ == "net_memif" && Argument(device_, "role") != "server";
  if (asks_ && Argument(device_, "socket-abstract") == "no") server_ = Argument(device_, "socket");
  if (error == 0 && !ServerMayBeThere()) return Status::Ok();
  const PortTurns::Exclusion exclusion;
  if (error == 0) error = rte_eth_dev_start(port_);
  if (error != 0) return Problem(device_, "cannot be started", error);
  started_ = true;
  return Status::Ok();
}

/// A socket in the file system can be looked for; the driver says aloud each time that it finds none.
bool RtePort::ServerMayBeThere() const noexcept {
  return server_.empty() || access(server_.c_str(), F_OK) == 0;
}

void RtePort::AskAgain() noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (now < ask_at_ || owner_ != getpid()) return;
  const bool asked = started_ && ask_at_ == std::chrono::steady_clock::time_point{};
  ask_at_ = now + kAskAgain;
  if (asked || (started_ && link_up()) || !ServerMayBeThere()) return;
  const PortTurns::Exclusion exclusion;
  if (started_) static_cast<void>(rte_eth_dev_stop(port_));
  started_ = rte_eth_dev_start(port_) == 0;
}

RtePort::~RtePort() {
  if (owner_ != getpid()) return;  // A fork: the device, and what the driver shares with its peer, are the parent's.
  if (received_count_ > 0) rte_pktmbuf_free_bulk(received_.data(), received_count_);
  if (sending_count_ > 0) rte_pktmbuf_free_bulk(sending_.data(), sending_count_);
  rte_pktmbuf_free(reserved_);
  {
    const std::lock_guard lock(SetupMutex());
    const PortTurns::Exclusion exclusion;
    if (started_) static_cast<void>(rte_eth_dev_stop(port_));
    Unplug(device_);
  }
  rte_mempool_free(pool_);
}

bool RtePort::link_up() noexcept {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

}  // namespace weir::transport::dpdk

extern "C" __attribute__((visibility("default"))) weir::Result<std::unique_ptr<weir::transport::dpdk::EthdevPort>>
weir_ethdev_open_1(const weir::transport::dpdk::EthdevSettings& settings) {
  return weir::transport::dpdk::RtePort::Open(settings);
}
