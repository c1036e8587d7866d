#include "transport/rdma/registrations.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::transport::rdma {
namespace {

/// What is received is read by nobody but a queue pair of ours to itself (FlushQueue): those to the peer do not allow
/// it.
constexpr int Access(Registrations::Use use) {
  return use == Registrations::Use::kSend ? 0
                                          : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
}

std::uint64_t PageBytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::string MemlockLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "none";
  return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

/// A library that has the function may stand on a kernel or device that cannot: asked with no handle, those that can
/// say that the handle is bad.
bool TakesDmaBuf(const Verbs& verbs, ibv_pd* domain) {
  if (verbs.reg_dmabuf_mr == nullptr) return false;
  errno = 0;
  ibv_mr* memory = verbs.reg_dmabuf_mr(domain, 0, 0, 0, -1, 0);
  if (memory != nullptr) verbs.dereg_mr(memory);
  return errno != EOPNOTSUPP && errno != EPROTONOSUPPORT;
}

}  // namespace

Registrations::Registrations(const Verbs* verbs, ibv_pd* domain, std::string port)
    : verbs_(verbs), domain_(domain), port_(std::move(port)), takes_dma_buf_(TakesDmaBuf(*verbs, domain)) {}

Registrations::~Registrations() {
  for (const Entry& entry : entries_) verbs_->dereg_mr(entry.memory);
}

Result<Registrations::Entry*> Registrations::Hold(const void* data, Bytes size, Use use) {
  const auto address = reinterpret_cast<std::uint64_t>(data);
  const std::uint64_t begin = address / PageBytes() * PageBytes();
  const std::uint64_t end = (address + size + PageBytes() - 1) / PageBytes() * PageBytes();
  const std::lock_guard lock(mutex_);
  if (const auto held = of_host_.find({begin, end, use}); held != of_host_.end()) {
    held->second->holders++;
    return held->second;
  }
  if (entries_.size() >= kMax) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("{}: {} ranges of memory ({} bytes) are registered, more are not allowed", port_,
                             entries_.size(), bytes_));
  }
  errno = 0;
  ibv_mr* memory = verbs_->reg_mr(domain_, reinterpret_cast<void*>(begin), end - begin, Access(use));
  if (memory == nullptr) return tl::unexpected(Refused(end - begin, errno));
  return Add({memory, begin, end, use, false, 1, {}});
}

Result<Registrations::Entry*> Registrations::HoldDmaBuf(int fd, Bytes offset, const void* data, Bytes size, Use use) {
  if (!takes_dma_buf_) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("{}: the device, its driver or libibverbs does not take memory by DMA-BUF", port_));
  }
  const auto begin = reinterpret_cast<std::uint64_t>(data);
  const std::lock_guard lock(mutex_);
  errno = 0;
  ibv_mr* memory = verbs_->reg_dmabuf_mr(domain_, offset, size, begin, fd, Access(use));
  if (memory == nullptr) return tl::unexpected(Refused(size, errno));
  return Add({memory, begin, begin + size, use, true, 1, {}});
}

Registrations::Entry* Registrations::Add(const Entry& entry) {
  entries_.push_front(entry);
  entries_.front().self = entries_.begin();
  bytes_ += entry.end - entry.begin;
  if (!entry.dma_buf) of_host_.emplace(Range{entry.begin, entry.end, entry.use}, &entries_.front());
  return &entries_.front();
}

void Registrations::Release(Entry* entry) {
  const std::lock_guard lock(mutex_);
  if (--entry->holders > 0) return;
  verbs_->dereg_mr(entry->memory);
  bytes_ -= entry->end - entry->begin;
  if (!entry->dma_buf) of_host_.erase({entry->begin, entry->end, entry->use});
  entries_.erase(entry->self);
}

std::size_t Registrations::ranges() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

Bytes Registrations::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

Status Registrations::Refused(Bytes size, int error) const {
  const std::string what = fmt::format("{}: cannot register {} bytes of memory: {}", port_, size, std::strerror(error));
  if (error != ENOMEM) return Status(StatusCode::kInvalidArgument, what);
  return Status(StatusCode::kResourceExhausted,
                fmt::format("{}; {} bytes are registered, the limit of locked memory is {}: ulimit -l unlimited", what,
                            bytes_, MemlockLimit()));
}

}  // namespace weir::transport::rdma
