// DPDK's environment, once in the life of a process, and its virtual devices.
#include "transport/dpdk/ethdev/eal.h"

#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <vector>

namespace weir::transport::dpdk {
namespace {

std::string NameOf(const std::string& device) {
  return device.substr(0, device.find(','));
}

Status Start(const std::string& device, std::uint32_t memory_mb) {
  // EAL binds the calling thread to the core that it calls main; the thread gets back what it had.
  cpu_set_t before;
  const bool known = sched_getaffinity(0, sizeof(before), &before) == 0;
  std::size_t core = 0;  // One that we may use: EAL starts a thread for each that it is told of.
  while (known && core < CPU_SETSIZE - 1 && !CPU_ISSET(core, &before)) ++core;
  std::vector<std::string> words{"weir",
                                 "--no-shconf",
                                 "--no-telemetry",
                                 "--log-level",
                                 "error",
                                 "--lcores",
                                 fmt::format("0@{}", core),
                                 "-m",
                                 std::to_string(memory_mb),
                                 "--file-prefix",
                                 fmt::format("weir{}", getpid())};
  if (IsPci(device)) {
    words.insert(words.end(), {"--in-memory", "-a", NameOf(device)});
  } else {
    words.insert(words.end(), {"--no-huge", "--no-pci"});
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size());
  for (std::string& word : words) arguments.push_back(word.data());
  rte_log_set_global_level(RTE_LOG_ERR);
  const int result = rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
  const int error = rte_errno;
  if (known) sched_setaffinity(0, sizeof(before), &before);
  if (result >= 0) return Status::Ok();
  return Status(StatusCode::kUnavailable,
                fmt::format("DPDK does not start: {}{}", rte_strerror(error),
                            IsPci(device) ? "; a PCI device needs hugepages: write how many into "
                                            "/proc/sys/vm/nr_hugepages, at least memory_mb in all"
                                          : ""));
}

/// Devices of the PCI bus that nobody uses are there from the start, or are looked for.
Result<std::uint16_t> PlugInPci(const std::string& name) {
  std::uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port) != 0) {
    const int result = rte_eal_hotplug_add("pci", name.c_str(), "");
    if (result != 0 || rte_eth_dev_get_port_by_name(name.c_str(), &port) != 0) {
      return Error(StatusCode::kUnavailable,
                   fmt::format("device \"{}\": {}; is it a network card that one of our drivers knows, and bound to "
                               "vfio-pci or uio_pci_generic?",
                               name, result == 0 ? "no network device" : rte_strerror(-result)));
    }
  }
  rte_eth_dev_owner owner{};
  if (rte_eth_dev_owner_new(&owner.id) != 0) return Error(StatusCode::kUnavailable, "DPDK has no owner to give");
  std::strncpy(owner.name, "weir", sizeof(owner.name) - 1);
  if (rte_eth_dev_owner_set(port, &owner) == 0) return port;
  return Error(StatusCode::kAlreadyExists, fmt::format("device \"{}\" is open already", name));
}

}  // namespace

bool IsPci(const std::string& device) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  const std::string name = NameOf(device);
  if (name.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = std::isxdigit(static_cast<unsigned char>(name[i])) != 0;
    if (kForm[i] == 'x' ? !digit : name[i] != kForm[i]) return false;
  }
  return true;
}

Status StartEal(const std::string& device, std::uint32_t memory_mb) {
  static const pid_t starter = getpid();
  static const bool with_pci = IsPci(device);
  static const Status status = Start(device, memory_mb);
  if (starter == getpid() && IsPci(device) && !with_pci) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("device \"{}\" is on the PCI bus, and DPDK was started in this process for a virtual "
                              "device, without hugepages; open the PCI device first",
                              device));
  }
  if (starter == getpid()) return status;
  return Status(
      StatusCode::kUnavailable,
      fmt::format("DPDK was started by process {}, of which this is a fork, and cannot be started again; open "
                  "the device before forking there, or execute a program here",
                  starter));
}

Result<std::uint16_t> PlugIn(const std::string& device) {
  const std::string name = NameOf(device);
  if (IsPci(name)) return PlugInPci(name);
  const std::string arguments = name.size() < device.size() ? device.substr(name.size() + 1) : "";
  const int result = rte_vdev_init(name.c_str(), arguments.c_str());
  if (result != 0) {
    const StatusCode code = result == -EPERM || result == -EACCES ? StatusCode::kPermissionDenied
                            : result == -EEXIST                   ? StatusCode::kAlreadyExists
                            : result == -EINVAL                   ? StatusCode::kInvalidArgument
                                                                  : StatusCode::kUnavailable;
    return Error(code, fmt::format("device \"{}\": {}", device, rte_strerror(-result)));
  }
  std::uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port) == 0) return port;
  rte_vdev_uninit(name.c_str());
  return Error(StatusCode::kInvalidArgument, fmt::format("device \"{}\" is no network device", device));
}

void Unplug(const std::string& device) {
  if (IsPci(device)) {
    static_cast<void>(rte_eal_hotplug_remove("pci", NameOf(device).c_str()));
  } else {
    rte_vdev_uninit(NameOf(device).c_str());
  }
}

}  // namespace weir::transport::dpdk
