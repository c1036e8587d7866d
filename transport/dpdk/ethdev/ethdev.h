#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "coflow/status.h"
#include "transport/dpdk/packet_port.h"

/// Network cards and what stands for them, by DPDK. The code that knows DPDK is in a library of its own,
/// libweir-ethdev.so, which is loaded when the first port is opened: without it, everything else runs as before.
namespace weir::transport::dpdk {

/// A port to open. EAL is started with the first one and never again in the life of the process: without hugepages,
/// unless that is a PCI device; without files or sockets of its own but those of the drivers, and without touching
/// signal handlers.
struct EthdevSettings {
  /// A virtual device as DPDK names it, with its arguments: "net_af_packet0,iface=eth1",
  /// "net_memif0,role=client,socket=/run/memif.sock,socket-abstract=no", "net_af_xdp0,iface=eth1".
  /// Or the address of a PCI device that is bound to vfio-pci or uio_pci_generic: "0000:00:05.0". It needs hugepages.
  std::string device;
  /// The Ethernet address to use; zeros: the device's own.
  MacAddress mac{};
  /// Without the Ethernet header; 0: the device's own. The rings of memif (bsize) and af_packet (framesz, blocksz) are
  /// made as large as it needs, unless `device` says how large they are.
  std::size_t mtu = 0;
  std::uint32_t descriptors = 1024;  ///< Of each queue, at most what the device has.
  std::uint32_t memory_mb = 128;     ///< For everything of DPDK; only that of the first port counts.
};

/// A port that is up. One thread at a time; different ports may be used by different threads. Deleting it closes it. In
/// a fork of the process it moves nothing, and deleting it there does not touch the device.
class EthdevPort : public PacketPort {
 public:
  /// What DPDK says the driver is: "net_memif".
  virtual const char* driver() const noexcept = 0;
  /// Whether the other side is there, for drivers that know.
  virtual bool link_up() noexcept = 0;
  virtual std::size_t mtu() const noexcept = 0;
};

/// Errors: kUnsupported: libweir-ethdev.so or what it needs is not there, and how to get it; kInvalidArgument: the
/// device is not understood; kPermissionDenied, kUnavailable: DPDK cannot open it, with its reason.
Result<std::unique_ptr<EthdevPort>> OpenEthdev(const EthdevSettings& settings);

/// Whether OpenEthdev can work here: loads the library, and starts nothing. Error kUnsupported, as above.
Status EthdevAvailable();

/// What libweir-ethdev.so exports: OpenEthdev without the loading.
inline constexpr const char* kEthdevSymbol = "weir_ethdev_open_1";
using EthdevOpen = Result<std::unique_ptr<EthdevPort>> (*)(const EthdevSettings& settings);

}  // namespace weir::transport::dpdk
