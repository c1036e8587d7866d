#include "agents/client/attachment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace weir::client {
namespace {

// The library interposes on libc's socket calls; these go past it.
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  return syscall(number, a, b, c, d, e, f);
}

long Address(const void* pointer) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

void CopyText(char* out, std::size_t size, const char* text) {
  const std::size_t length = strnlen(text, size - 1);
  memcpy(out, text, length);
  memset(out + length, 0, size - length);
}

/// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) Call(SYS_close, fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

bool WaitReadable(int fd, std::int64_t deadline_ns) {
  const std::int64_t left = deadline_ns - NowNs();
  if (left <= 0) return false;
  pollfd entry = {fd, POLLIN, 0};
  const timespec timeout = {left / 1'000'000'000, left % 1'000'000'000};
  return Call(SYS_ppoll, Address(&entry), 1, Address(&timeout), 0, 8) == 1;
}

/// Receives the reply and its two descriptors; -1 in those that did not come.
bool ReceiveReply(int socket, std::int64_t deadline_ns, AttachReply* reply, int fds[2]) {
  fds[0] = fds[1] = -1;
  if (!WaitReadable(socket, deadline_ns)) return false;
  iovec part = {reply, sizeof *reply};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const long got = Call(SYS_recvmsg, socket, Address(&message), MSG_CMSG_CLOEXEC | MSG_WAITALL);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(header), (count < 2 ? count : 2) * sizeof(int));
  }
  return got == static_cast<long>(sizeof *reply);
}

void* MapShared(int fd, std::size_t size) {
  struct stat info = {};
  if (fd < 0 || fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(size)) return nullptr;
  // Memory that could shrink would kill this process the next time it looked.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return nullptr;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

std::int64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

int FutexWait(const std::atomic<std::uint32_t>* word, std::uint32_t seen, std::int64_t timeout_ns) {
  const timespec timeout = {timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  return Call(SYS_futex, Address(word), FUTEX_WAIT, seen, Address(&timeout)) == 0 ? 0 : errno;
}

void FutexWakeAll(const std::atomic<std::uint32_t>* word) {
  Call(SYS_futex, Address(word), FUTEX_WAKE, 0x7fffffff);
}

void Ring(Doorbell* doorbell) {
  doorbell->rings.fetch_add(1, std::memory_order_seq_cst);
  if (doorbell->sleeping.load(std::memory_order_seq_cst) != 0) FutexWakeAll(&doorbell->rings);
}

namespace {

/// Many processes may start at once and fill the agent's queue; there is time to wait for it.
bool Connect(int socket, const sockaddr_un& address, std::int64_t deadline_ns) {
  while (Call(SYS_connect, socket, Address(&address), sizeof address) != 0) {
    if ((errno != EAGAIN && errno != EINTR) || NowNs() >= deadline_ns) return false;
    const timespec pause = {0, 1'000'000};
    Call(SYS_nanosleep, Address(&pause));
  }
  return true;
}

}  // namespace

AttachResult Attach(const char* socket_path, const AttachRequest& request, int timeout_ms, Attachment* out) {
  const std::int64_t deadline = NowNs() + std::int64_t{timeout_ms} * 1'000'000;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (strlen(socket_path) >= sizeof address.sun_path) return AttachResult::kBroken;
  CopyText(address.sun_path, sizeof address.sun_path, socket_path);
  const Descriptor socket(static_cast<int>(Call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (socket.get() < 0 || !Connect(socket.get(), address, deadline)) return AttachResult::kNoAgent;
  if (Call(SYS_sendto, socket.get(), Address(&request), sizeof request, MSG_NOSIGNAL) !=
      static_cast<long>(sizeof request)) {
    return AttachResult::kNoAgent;
  }
  AttachReply reply = {};
  int fds[2];
  const bool answered = ReceiveReply(socket.get(), deadline, &reply, fds);
  const Descriptor segment_fd(fds[0]);
  const Descriptor doorbell_fd(fds[1]);
  if (!answered) return AttachResult::kNoAgent;
  if (reply.magic != kSegmentMagic || reply.version_major != kSegmentVersionMajor) return AttachResult::kBroken;
  if (reply.status != 0) {
    CopyText(out->reason, sizeof out->reason, reply.reason);
    return AttachResult::kRefused;
  }
  if (reply.size < sizeof(Segment)) return AttachResult::kBroken;
  auto* segment = static_cast<Segment*>(MapShared(segment_fd.get(), sizeof(Segment)));
  auto* doorbell = static_cast<Doorbell*>(MapShared(doorbell_fd.get(), sizeof(Doorbell)));
  if (segment == nullptr || doorbell == nullptr || segment->header.magic != kSegmentMagic) {
    if (segment != nullptr) munmap(segment, sizeof(Segment));
    if (doorbell != nullptr) munmap(doorbell, sizeof(Doorbell));
    return AttachResult::kBroken;
  }
  out->segment = segment;
  out->doorbell = doorbell;
  return AttachResult::kAttached;
}

bool RequestFromEnvironment(AttachRequest* request) {
  *request = {};
  request->magic = kSegmentMagic;
  request->version_major = kSegmentVersionMajor;
  request->version_minor = kSegmentVersionMinor;
  constexpr const char* kJobVariables[] = {"WEIR_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "OMPI_MCA_ess_base_jobid",
                                           "PMIX_NAMESPACE"};
  const char* job = nullptr;
  for (const char* variable : kJobVariables) {
    job = getenv(variable);
    if (job != nullptr && *job != '\0') break;
    job = nullptr;
  }
  char rendezvous[sizeof request->job] = {};
  if (job == nullptr) {
    const char* address = getenv("MASTER_ADDR");
    const char* port = getenv("MASTER_PORT");
    if (address == nullptr || port == nullptr) return false;
    snprintf(rendezvous, sizeof rendezvous, "%s:%s", address, port);
    job = rendezvous;
  }
  CopyText(request->job, sizeof request->job, job);
  if (const char* tenant = getenv("WEIR_TENANT")) CopyText(request->tenant, sizeof request->tenant, tenant);
  if (const char* job_class = getenv("WEIR_CLASS")) CopyText(request->job_class, sizeof request->job_class, job_class);
  if (const char* weight = getenv("WEIR_WEIGHT")) request->weight = strtod(weight, nullptr);
  if (const char* gpus = getenv("WEIR_GPUS")) request->gpus = static_cast<std::uint32_t>(strtoul(gpus, nullptr, 10));
  return true;
}

}  // namespace weir::client
