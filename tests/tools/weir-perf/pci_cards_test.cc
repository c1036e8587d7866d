// What the doctor says of network cards, from trees of files that look like /sys and /dev.
#include "tools/weir-perf/pci_cards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace weir::tools {
namespace {

using Weight = Finding::Weight;
namespace fs = std::filesystem;

class PciCards : public testing::Test {
 protected:
  PciCards() : root_(fs::path(testing::TempDir()) / ("weir-pci-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~PciCards() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void Card(const std::string& address, const std::string& kind, const std::string& driver) {
    const std::string device = "sys/bus/pci/devices/" + address;
    Write(device + "/class", kind);
    Write(device + "/vendor", "0x1af4");
    Write(device + "/device", "0x1000");
    if (driver.empty()) return;
    fs::create_directories(root_ / "sys/bus/pci/drivers" / driver);
    fs::create_symlink("../../../bus/pci/drivers/" + driver, root_ / device / "driver");
  }
  void Group(const std::string& address, const std::string& group) {
    fs::create_directories(root_ / "sys/kernel/iommu_groups" / group);
    fs::create_symlink("../../../kernel/iommu_groups/" + group,
                       root_ / "sys/bus/pci/devices" / address / "iommu_group");
  }
  void Hugepages(const std::string& all, const std::string& free) {
    Write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", all);
    Write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", free);
  }
  /// The one about `what`.
  Finding Of(const std::string& what) {
    for (const Finding& one : ExaminePciCards(root_)) {
      if (one.what == what) return one;
    }
    ADD_FAILURE() << "nothing is said of " << what;
    return {};
  }

  fs::path root_;
};

TEST_F(PciCards, AHostWithoutACardIsToldThatItNeedsNone) {
  Card("0000:00:01.0", "0x010601", "ahci");  // A disk.
  const auto findings = ExaminePciCards(root_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].weight, Weight::kGood);
  EXPECT_EQ(findings[0].found, "no network card; virtual devices need none, and no hugepages");
}

TEST_F(PciCards, OneThatTheKernelDrivesIsAdviceWithTheCommandsThatBindIt) {
  Card("0000:3b:00.0", "0x020000", "virtio-pci");
  Write("sys/bus/pci/devices/0000:3b:00.0/virtio0/net/ens3/mtu", "1500");
  const Finding card = Of("card 0000:3b:00.0");
  EXPECT_EQ(card.weight, Weight::kAdvice);
  EXPECT_EQ(card.found, "1af4:1000, driven by the kernel's virtio-pci as ens3");
  EXPECT_EQ(card.advice,
            "for DPDK, which then has it alone, as root: ip link set ens3 down; modprobe uio_pci_generic; echo "
            "uio_pci_generic > /sys/bus/pci/devices/0000:3b:00.0/driver_override; echo 0000:3b:00.0 > "
            "/sys/bus/pci/devices/0000:3b:00.0/driver/unbind; echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe");
  EXPECT_EQ(Of("drivers for programs").found, "none is loaded; the machine has no IOMMU");
  EXPECT_EQ(Of("drivers for programs").weight, Weight::kAdvice);
  EXPECT_EQ(Of("hugepages").found, "none");
  EXPECT_EQ(Of("hugepages").weight, Weight::kAdvice);
}

TEST_F(PciCards, OneThatIsReadySaysHowToNameIt) {
  Card("0000:00:05.0", "0x020000", "uio_pci_generic");
  Hugepages("80", "64");
  const Finding card = Of("card 0000:00:05.0");
  EXPECT_EQ(card.weight, Weight::kGood);
  EXPECT_EQ(card.found,
            "1af4:1000, bound to uio_pci_generic: device=0000:00:05.0 where Weir was built with its driver");
  EXPECT_EQ(Of("drivers for programs").weight, Weight::kGood);
  EXPECT_EQ(Of("hugepages").weight, Weight::kGood);
  EXPECT_EQ(Of("hugepages").found, "80 of 2048 kB, 64 of them free");
}

TEST_F(PciCards, HugepagesThatOthersHaveAreNotEnough) {
  Card("0000:00:05.0", "0x020000", "uio_pci_generic");
  Hugepages("80", "63");
  EXPECT_EQ(Of("hugepages").weight, Weight::kAdvice);
  EXPECT_EQ(Of("hugepages").advice,
            "a card on the PCI bus needs memory_mb of them, 128 unless set: as root: sysctl vm.nr_hugepages=64");
}

TEST_F(PciCards, WithAnIommuItIsVfioAndItsGroupMustBeOurs) {
  Card("0000:00:05.0", "0x020000", "");
  Group("0000:00:05.0", "7");
  EXPECT_EQ(Of("card 0000:00:05.0").found, "1af4:1000, without a driver");
  EXPECT_NE(Of("card 0000:00:05.0").advice.find("modprobe vfio-pci"), std::string::npos);
  EXPECT_EQ(Of("drivers for programs").advice, "as root: modprobe vfio-pci");

  Card("0000:00:06.0", "0x020000", "vfio-pci");
  Group("0000:00:06.0", "8");
  EXPECT_EQ(Of("card 0000:00:06.0").weight, Weight::kAdvice);
  EXPECT_EQ(Of("card 0000:00:06.0").advice, "as root: chown " + std::to_string(getuid()) + " /dev/vfio/8");
  Write("dev/vfio/8", "");
  EXPECT_EQ(Of("card 0000:00:06.0").weight, Weight::kGood);
  EXPECT_EQ(Of("drivers for programs").weight, Weight::kGood);
}

}  // namespace
}  // namespace weir::tools
