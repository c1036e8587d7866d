#include "agents/host/doorbell.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <string>
#include <utility>

namespace weir::agents {
namespace {

constexpr std::size_t kPage = 4096;
static_assert(sizeof(client::Doorbell) <= kPage);

}  // namespace

Result<std::unique_ptr<DoorbellWaiter>> DoorbellWaiter::Start(std::function<void()> on_ring) {
  const int fd = memfd_create("weir-doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Error(StatusCode::kResourceExhausted, std::string("memfd_create: ") + std::strerror(errno));
  void* memory = MAP_FAILED;
  if (ftruncate(fd, kPage) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return Error(StatusCode::kResourceExhausted, std::string("cannot set up the doorbell: ") + std::strerror(error));
  }
  return std::unique_ptr<DoorbellWaiter>(new DoorbellWaiter(fd, new (memory) client::Doorbell, std::move(on_ring)));
}

DoorbellWaiter::DoorbellWaiter(int memfd, client::Doorbell* page, std::function<void()> on_ring)
    : memfd_(memfd), page_(page), on_ring_(std::move(on_ring)), thread_([this] { Run(); }) {}

DoorbellWaiter::~DoorbellWaiter() {
  stop_.store(true);
  page_->rings.fetch_add(1);
  syscall(SYS_futex, &page_->rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  thread_.join();
  munmap(page_, kPage);
  close(memfd_);
}

void DoorbellWaiter::Run() {
  std::uint32_t seen = page_->rings.load();
  while (!stop_.load()) {
    const timespec patience{0, look_.load(std::memory_order_relaxed) ? kLookEvery : kIdleEvery};
    page_->sleeping.store(1);
    syscall(SYS_futex, &page_->rings, FUTEX_WAIT, seen, &patience, nullptr, 0);
    const std::uint32_t now = page_->rings.load();
    if (now != seen) rings_.fetch_add(1, std::memory_order_relaxed);
    if (now != seen || look_.load(std::memory_order_relaxed)) on_ring_();
    seen = now;
  }
}

}  // namespace weir::agents
