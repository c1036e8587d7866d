// Opening and closing a port.
#include "transport/dpdk/ethdev/port.h"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "coflow/unique_fd.h"
#include "transport/dpdk/ethdev/eal.h"
#include "transport/dpdk/ethdev/interrupts.h"
#include "transport/dpdk/ethdev/pool.h"

namespace weir::transport::dpdk {
namespace {

constexpr std::size_t kMtuMin = kFrameBytesMin - 14;
constexpr std::size_t kMtuMax = 9000;
constexpr std::uint32_t kDescriptorsMax = 4096;
constexpr unsigned kKept = 512;                    ///< In caches of cores and between the queues,
constexpr unsigned kKeptByXdp = kKept + 2 * 2048;  ///< and with the two queues more that af_xdp has.
constexpr std::size_t kRingRoom = 2048;   ///< Of a frame in the rings of memif and af_packet, unless told otherwise;
constexpr std::size_t kRingHeader = 128;  ///< what the kernel puts in front of it there, at most.
constexpr std::size_t kRingRoomLarge = 10'240;
constexpr std::size_t kRingRoomMax = 32'768;  ///< A packet's room is told in 16 bits.

std::recursive_mutex& SetupMutex() {
  static std::recursive_mutex mutex;  // DPDK's setup is for one thread; opening may end in closing.
  return mutex;
}

Status Problem(const std::string& device, const char* what, int error) {
  return Status(error == -EPERM || error == -EACCES ? StatusCode::kPermissionDenied : StatusCode::kUnavailable,
                fmt::format("device \"{}\": {}: {}", device, what, rte_strerror(-error)));
}

/// Of "net_memif0,role=client": the role. Empty where there is none.
std::string Argument(const std::string& device, const std::string& key) {
  const std::size_t at = device.find("," + key + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return device.substr(begin, device.find(',', begin) - begin);
}

/// Virtual devices that tell DPDK that they take 1500 bytes, and carry what their rings have room for.
struct RingDriver {
  std::string_view prefix;
  const char* key;   ///< The argument that says how much room a frame has,
  std::string more;  ///< and what to give for an MTU of up to kMtuMax.
};

const RingDriver* RingDriverOf(const std::string& device) {
  static const std::array<RingDriver, 2> drivers{
      RingDriver{"net_af_packet", "framesz", fmt::format(",blocksz={},framesz={}", 2 * kRingRoomLarge, kRingRoomLarge)},
      RingDriver{"net_memif", "bsize", fmt::format(",bsize={}", kRingRoomLarge)}};
  static_assert(kRingRoomLarge >= kMtuMax + 14 + kRingHeader && 2 * kRingRoomLarge % 4096 == 0);
  for (const RingDriver& driver : drivers) {
    if (device.starts_with(driver.prefix)) return &driver;
  }
  return nullptr;
}

std::size_t RingRoomOf(const std::string& device) {
  const RingDriver* driver = RingDriverOf(device);
  const std::string room = driver == nullptr ? "" : Argument(device, driver->key);
  return room.empty() ? kRingRoom : std::strtoul(room.c_str(), nullptr, 10);
}

/// The device with rings that have room for `mtu`, unless it says itself how large they are.
std::string WithRoomFor(const std::string& device, std::size_t mtu) {
  const RingDriver* driver = RingDriverOf(device);
  if (driver == nullptr || mtu + 14 + kRingHeader <= kRingRoom || !Argument(device, driver->key).empty()) return device;
  return device + driver->more;
}

/// What the kernel lets through an interface; 0: it does not say.
std::size_t KernelMtu(const std::string& interface) {
  ifreq request{};
  if (interface.empty() || interface.size() >= sizeof(request.ifr_name)) return 0;
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  const UniqueFd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool known = socket_fd.get() >= 0 && ioctl(socket_fd.get(), SIOCGIFMTU, &request) == 0;
  return known ? static_cast<std::size_t>(request.ifr_mtu) : 0;
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
  if (const std::size_t room = RingRoomOf(settings.device); room > kRingRoomMax) {
    return wrong(RingDriverOf(settings.device)->key, room, fmt::format("up to {}", kRingRoomMax));
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<EthdevPort>> RtePort::Open(const EthdevSettings& settings) {
  if (Status status = CheckSettings(settings); !status.ok()) return tl::unexpected(status);
  const std::lock_guard lock(SetupMutex());
  if (Status status = StartEal(settings.device, settings.memory_mb); !status.ok()) return tl::unexpected(status);
  const std::string device = WithRoomFor(settings.device, settings.mtu);
  const auto number = PlugIn(device);
  if (!number) return tl::unexpected(number.error());
  std::unique_ptr<RtePort> port(new RtePort);
  PortTurns::StopInForks();
  port->owner_ = getpid();
  port->device_ = device;
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
  if (wanted > mtu_ && RingDriverOf(device_) != nullptr) return TakeRoom(wanted);
  const int error = rte_eth_dev_set_mtu(port_, static_cast<std::uint16_t>(wanted));
  if (error != 0 && wanted > mtu_) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("device \"{}\": mtu: found {}, allowed: up to {} ({})", device_, wanted,
                              device_max == 0 || device_max == UINT16_MAX ? mtu_ : device_max, rte_strerror(-error)));
  }
  mtu_ = wanted;  // A smaller one needs no help of the driver.
  return Status::Ok();
}

/// As much as the rings and the kernel's interface have room for; asked for it, DPDK would refuse.
Status RtePort::TakeRoom(std::size_t wanted) {
  const std::size_t needs = wanted + 14 + kRingHeader;
  if (const std::size_t room = RingRoomOf(device_); room < needs) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("device \"{}\": {}: found {}, allowed: {} and more for an mtu of {}; without it we set it", device_,
                    RingDriverOf(device_)->key, room, needs, wanted));
  }
  const std::string interface = Argument(device_, "iface");
  if (const std::size_t kernel = KernelMtu(interface); kernel != 0 && kernel < wanted) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("device \"{}\": mtu: found {}, allowed: up to {}, that of {}; raise it: ip link set {} "
                              "mtu {}",
                              device_, wanted, kernel, interface, interface, wanted));
  }
  mtu_ = wanted;
  return Status::Ok();
}

Status RtePort::StartQueues(std::uint32_t descriptors) {
  auto receive = static_cast<std::uint16_t>(descriptors);
  auto send = receive;
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive, &send); error != 0) {
    return Problem(device_, "queues", error);
  }
  // af_packet copies whatever its ring holds into a packet without asking how much that takes.
  const auto room =
      static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + std::max<std::size_t>(mtu_ + 64, RingRoomOf(device_)));
  // Both queues full, two bursts in our hands, and what drivers keep beside: af_xdp takes back what it sent only when
  // it sends again, so a pool that runs dry would stay so.
  const unsigned count = receive + send + 4u * kBurst + (driver_ == "net_af_xdp" ? kKeptByXdp : kKept);
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
