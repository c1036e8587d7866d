#include "tools/weir-perf/pci_cards.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace weir::tools {
namespace {

using Weight = Finding::Weight;
using std::filesystem::path;

constexpr std::string_view kVfio = "vfio-pci";
constexpr std::string_view kUio = "uio_pci_generic";
constexpr std::uint64_t kMemoryMb = 128;  ///< What a port takes unless memory_mb says otherwise.

struct Card {
  std::string address;  ///< "0000:00:05.0"
  std::string kind;     ///< "1af4:1000", vendor and device.
  std::string driver;   ///< Of the kernel; empty: none.
  std::string interface;
  std::string iommu_group;

  bool for_programs() const { return driver == kVfio || driver == kUio; }
};

/// Its first word; empty where it cannot be read.
std::string Word(const path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

std::string LinkName(const path& link) {
  std::error_code error;
  const path target = std::filesystem::read_symlink(link, error);
  return error ? "" : target.filename().string();
}

std::vector<path> In(const path& folder) {
  std::vector<path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string WithoutPrefix(const std::string& hexadecimal) {
  return hexadecimal.starts_with("0x") ? hexadecimal.substr(2) : hexadecimal;
}

std::vector<Card> Cards(const path& root) {
  std::vector<Card> cards;
  for (const path& device : In(root / "sys/bus/pci/devices")) {
    if (!Word(device / "class").starts_with("0x02")) continue;  // Network controllers.
    Card card;
    card.address = device.filename().string();
    card.kind = WithoutPrefix(Word(device / "vendor")) + ':' + WithoutPrefix(Word(device / "device"));
    card.driver = LinkName(device / "driver");
    card.iommu_group = LinkName(device / "iommu_group");
    std::vector<path> interfaces = In(device / "net");
    for (const path& below : In(device)) {  // A virtio card has its interface one level down.
      if (below.filename().string().starts_with("virtio")) interfaces = In(below / "net");
    }
    if (!interfaces.empty()) card.interface = interfaces.front().filename().string();
    cards.push_back(card);
  }
  return cards;
}

/// The driver to bind a card to: vfio-pci wherever the IOMMU keeps the card to our memory.
std::string_view DriverFor(const path& root) {
  return In(root / "sys/kernel/iommu_groups").empty() ? kUio : kVfio;
}

Finding OfCard(const Card& card, const path& root) {
  const std::string what = "card " + card.address;
  if (card.for_programs()) {
    const path group = root / "dev/vfio" / card.iommu_group;
    if (card.driver == kVfio && !card.iommu_group.empty() && access(group.c_str(), R_OK | W_OK) != 0) {
      return {Weight::kAdvice, what, fmt::format("{}, bound to {}, and we may not open it", card.kind, card.driver),
              fmt::format("as root: chown {} /dev/vfio/{}", getuid(), card.iommu_group)};
    }
    return {Weight::kGood, what,
            fmt::format("{}, bound to {}: device={} where Weir was built with its driver", card.kind, card.driver,
                        card.address),
            ""};
  }
  const std::string_view driver = DriverFor(root);
  std::string advice = "for DPDK, which then has it alone, as root: ";
  if (!card.interface.empty()) advice += fmt::format("ip link set {} down; ", card.interface);
  advice +=
      fmt::format("modprobe {}; echo {} > /sys/bus/pci/devices/{}/driver_override; ", driver, driver, card.address);
  if (!card.driver.empty())
    advice += fmt::format("echo {} > /sys/bus/pci/devices/{}/driver/unbind; ", card.address, card.address);
  advice += fmt::format("echo {} > /sys/bus/pci/drivers_probe", card.address);
  std::string found = card.kind + ", ";
  found += card.driver.empty() ? "without a driver" : "driven by the kernel's " + card.driver;
  if (!card.interface.empty()) found += " as " + card.interface;
  return {Weight::kAdvice, what, found, advice};
}

Finding OfDrivers(const path& root) {
  const bool iommu = DriverFor(root) == kVfio;
  std::vector<std::string_view> loaded;
  for (const std::string_view one : {kVfio, kUio}) {
    if (std::filesystem::exists(root / "sys/bus/pci/drivers" / one)) loaded.push_back(one);
  }
  const std::string found = fmt::format(
      "{}; the machine has {}", loaded.empty() ? "none is loaded" : fmt::format("{}", fmt::join(loaded, " and ")),
      iommu ? "an IOMMU" : "no IOMMU");
  const bool safe = std::find(loaded.begin(), loaded.end(), DriverFor(root)) != loaded.end();
  if (safe || (!iommu && !loaded.empty())) return {Weight::kGood, "drivers for programs", found, ""};
  return {
      Weight::kAdvice, "drivers for programs", found,
      iommu ? "as root: modprobe vfio-pci"
            : "as root: modprobe uio_pci_generic; it does not keep the card from memory that is not ours, so only root "
              "may use it. With intel_iommu=on or amd_iommu=on on the kernel's command line, vfio-pci does"};
}

Finding OfHugepages(const path& root) {
  std::uint64_t free_kb = 0;
  std::string found;
  for (const path& size : In(root / "sys/kernel/mm/hugepages")) {
    const std::string name = size.filename().string();  // "hugepages-2048kB"
    const std::uint64_t kb =
        std::strtoull(name.c_str() + std::min<std::size_t>(name.find('-') + 1, name.size()), nullptr, 10);
    const std::uint64_t all = std::strtoull(Word(size / "nr_hugepages").c_str(), nullptr, 10);
    const std::uint64_t free = std::strtoull(Word(size / "free_hugepages").c_str(), nullptr, 10);
    if (all == 0) continue;
    free_kb += kb * free;
    found += fmt::format("{}{} of {} kB, {} of them free", found.empty() ? "" : "; ", all, kb, free);
  }
  if (found.empty()) found = "none";
  if (free_kb >= kMemoryMb * 1024) return {Weight::kGood, "hugepages", found, ""};
  return {
      Weight::kAdvice, "hugepages", found,
      fmt::format("a card on the PCI bus needs memory_mb of them, {} unless set: as root: sysctl vm.nr_hugepages={}",
                  kMemoryMb, kMemoryMb / 2)};
}

}  // namespace

std::vector<Finding> ExaminePciCards(const path& root) {
  const std::vector<Card> cards = Cards(root);
  if (cards.empty()) {
    return {
        {Weight::kGood, "cards on the PCI bus", "no network card; virtual devices need none, and no hugepages", ""}};
  }
  std::vector<Finding> findings;
  for (const Card& card : cards) findings.push_back(OfCard(card, root));
  findings.push_back(OfDrivers(root));
  findings.push_back(OfHugepages(root));
  return findings;
}

}  // namespace weir::tools
