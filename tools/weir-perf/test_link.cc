#include "tools/weir-perf/test_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace weir::tools {
namespace {

constexpr const char* kMask = "255.255.255.0";
constexpr std::size_t kFrameMax = TestLink::kMtuMax + 64;  ///< With its Ethernet header, and tags if there are some.

Status Refused(const char* what) {
  return Status(StatusCode::kUnsupported,
                fmt::format("{}: {}; run as root, or where user namespaces are allowed", what,
                            errno == ENOSPC ? "there may be no more of them (sysctl user.max_net_namespaces)"
                                            : std::strerror(errno)));
}

bool WriteTo(const char* path, const std::string& text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Into a network namespace of our own, and if that is refused into one of a user namespace of our own.
Status Separate() {
  if (unshare(CLONE_NEWNET) == 0) return Status::Ok();
  const auto user = geteuid();
  const auto group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return Refused("cannot make a network namespace");
  if (WriteTo("/proc/self/setgroups", "deny") && WriteTo("/proc/self/uid_map", fmt::format("0 {} 1", user)) &&
      WriteTo("/proc/self/gid_map", fmt::format("0 {} 1", group))) {
    return Status::Ok();
  }
  return Refused("cannot have rights in a user namespace");
}

UniqueFd OwnNamespace() {
  return UniqueFd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

void SetAddress(sockaddr* to, const char* address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  inet_pton(AF_INET, address, &in.sin_addr);
  std::memcpy(to, &in, sizeof in);
}

ifreq About(const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

bool BringUp(int socket_fd, const char* device) {
  ifreq request = About(device);
  if (ioctl(socket_fd, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ioctl(socket_fd, SIOCSIFFLAGS, &request) == 0;
}

/// The end of the cable in the namespace that the thread is in; none, and errno, when something is refused.
UniqueFd PlugIn(const char* address, std::uint32_t mtu) {
  UniqueFd tap(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = About(TestLink::kDevice);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (!tap || !control || ioctl(tap.get(), TUNSETIFF, &request) != 0) return {};
  request = About(TestLink::kDevice);
  request.ifr_mtu = static_cast<int>(mtu);
  if (ioctl(control.get(), SIOCSIFMTU, &request) != 0) return {};
  request = About(TestLink::kDevice);
  SetAddress(&request.ifr_addr, address);
  if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return {};
  SetAddress(&request.ifr_netmask, kMask);
  if (ioctl(control.get(), SIOCSIFNETMASK, &request) != 0) return {};
  if (!BringUp(control.get(), TestLink::kDevice) || !BringUp(control.get(), "lo")) return {};
  return tap;
}

}  // namespace

Result<std::unique_ptr<TestLink>> TestLink::Make(std::uint32_t mtu, std::uint64_t seed) {
  std::unique_ptr<TestLink> link(new TestLink(seed));
  if (Status status = Separate(); !status.ok()) return tl::unexpected(status);
  const UniqueFd ours = OwnNamespace();
  link->ends_[0] = PlugIn(kOurs, mtu);
  if (!ours || !link->ends_[0]) return tl::unexpected(Refused("cannot make a TAP device"));
  if (unshare(CLONE_NEWNET) != 0) return tl::unexpected(Refused("cannot make a second network namespace"));
  link->other_ = OwnNamespace();
  link->ends_[1] = PlugIn(kTheirs, mtu);
  if (!link->other_ || !link->ends_[1]) return tl::unexpected(Refused("cannot make a second TAP device"));
  if (setns(ours.get(), CLONE_NEWNET) != 0) return tl::unexpected(Refused("cannot go back to the first namespace"));
  link->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!link->stop_) return tl::unexpected(Refused("cannot make an event"));
  link->thread_ = std::thread([carrier = link.get()] { carrier->Carry(); });
  return link;
}

TestLink::~TestLink() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  static_cast<void>(write(stop_.get(), &one, sizeof one));  // It cannot be full.
  thread_.join();
}

void TestLink::Carry() {
  std::array<pollfd, 3> waits{{{ends_[0].get(), POLLIN, 0}, {ends_[1].get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  while (poll(waits.data(), waits.size(), -1) >= 0 || errno == EINTR) {
    if (waits[2].revents != 0) return;
    if (waits[0].revents != 0) Pass(ends_[0].get(), ends_[1].get());
    if (waits[1].revents != 0) Pass(ends_[1].get(), ends_[0].get());
  }
}

void TestLink::Pass(int from, int to) {
  constexpr int kAtOnce = 32;
  std::array<std::byte, kFrameMax> frame;
  for (int i = 0; i < kAtOnce; ++i) {
    const ssize_t size = read(from, frame.data(), frame.size());
    if (size <= 0) return;
    const double lose = lose_;
    const bool gone = lose >= 1 || (lose > 0 && std::uniform_real_distribution<>(0, 1)(random_) < lose);
    // What the other end has no room for is lost, as in a switch.
    if (gone || write(to, frame.data(), static_cast<std::size_t>(size)) != size) lost_++;
  }
}

}  // namespace weir::tools
