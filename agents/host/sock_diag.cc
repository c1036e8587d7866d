#include "agents/host/sock_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace weir::agents {
namespace {

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

constexpr std::size_t kAnswerMax = 4096;  // One answer with tcp_info is about 400 bytes.

bool IsMapped(const std::array<std::uint8_t, 16>& address) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(address.data(), kPrefix, sizeof(kPrefix)) == 0;
}

Request MakeRequest(const SocketKey& key, std::uint32_t sequence) {
  Request request{};
  request.header.nlmsg_len = sizeof(Request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.header.nlmsg_seq = sequence;
  inet_diag_req_v2& body = request.body;
  body.sdiag_protocol = IPPROTO_TCP;
  body.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  body.idiag_states = ~0u;
  body.id.idiag_sport = htons(key.local_port);
  body.id.idiag_dport = htons(key.peer_port);
  body.id.idiag_cookie[0] = body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  // An IPv4-mapped connection is found among the IPv4 ones, whatever family its socket has.
  const bool mapped = key.family == AF_INET6 && IsMapped(key.local) && IsMapped(key.peer);
  const std::size_t skip = mapped ? 12 : 0;
  const std::size_t length = key.family == AF_INET || mapped ? 4 : 16;
  body.sdiag_family = length == 4 ? AF_INET : AF_INET6;
  std::memcpy(body.id.idiag_src, key.local.data() + skip, length);
  std::memcpy(body.id.idiag_dst, key.peer.data() + skip, length);
  return request;
}

void ReadTcpInfo(const std::byte* data, std::size_t size, SocketQueue* queue) {
  tcp_info info{};
  std::memcpy(&info, data, std::min(size, sizeof(info)));
  if (info.tcpi_snd_mss > 0) queue->segment = info.tcpi_snd_mss;
  if (size >= offsetof(tcp_info, tcpi_notsent_bytes) + sizeof(info.tcpi_notsent_bytes)) {
    queue->unsent = info.tcpi_notsent_bytes;
    const bool known = info.tcpi_min_rtt != 0 && info.tcpi_min_rtt != ~0u;
    queue->min_rtt = known ? Nanoseconds{info.tcpi_min_rtt} * kMicrosecond : 0;
  }
}

/// `size` bytes of one SOCK_DIAG_BY_FAMILY answer's payload.
void ReadAnswer(const std::byte* data, std::size_t size, SocketQueue* queue) {
  inet_diag_msg message;
  if (size < sizeof(message)) return;
  std::memcpy(&message, data, sizeof(message));
  queue->found = true;
  queue->outstanding = message.idiag_wqueue;
  queue->unsent = message.idiag_wqueue;  // Until tcp_info says better.
  std::size_t at = NLMSG_ALIGN(sizeof(message));
  rtattr attribute;
  while (at + sizeof(attribute) <= size) {
    std::memcpy(&attribute, data + at, sizeof(attribute));
    if (attribute.rta_len < sizeof(attribute) || at + attribute.rta_len > size) return;
    if (attribute.rta_type == INET_DIAG_INFO) {
      ReadTcpInfo(data + at + sizeof(attribute), attribute.rta_len - sizeof(attribute), queue);
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
}

}  // namespace

SocketQueue QueueOf(int fd) {
  SocketQueue queue;
  int outstanding = 0;
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (ioctl(fd, SIOCOUTQ, &outstanding) != 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return queue;
  queue.found = true;
  queue.outstanding = static_cast<Bytes>(outstanding);
  ReadTcpInfo(std::as_bytes(std::span(&info, 1)).data(), size, &queue);
  return queue;
}

Result<SockDiag> SockDiag::Open() {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd) {
    return Error(StatusCode::kUnsupported, std::string("cannot open a sock_diag socket: ") + std::strerror(errno) +
                                               "; the kernel needs CONFIG_INET_DIAG");
  }
  const timeval patience{0, 100'000};  // The kernel answers at once; this only bounds the impossible.
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return SockDiag(std::move(fd));
}

Result<std::vector<SocketQueue>> SockDiag::Query(std::span<const SocketKey> keys) {
  std::vector<SocketQueue> queues(keys.size());
  for (std::size_t at = 0; at < keys.size(); at += kBatch) {
    const std::size_t count = std::min(kBatch, keys.size() - at);
    const Status status = QueryBatch(keys.subspan(at, count), std::span(queues).subspan(at, count));
    if (!status.ok()) return tl::unexpected<Status>(status);
  }
  return queues;
}

Status SockDiag::QueryBatch(std::span<const SocketKey> keys, std::span<SocketQueue> queues) {
  std::array<Request, kBatch> requests;
  const std::uint32_t first = sequence_;
  sequence_ += static_cast<std::uint32_t>(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    requests[i] = MakeRequest(keys[i], first + static_cast<std::uint32_t>(i));
  }
  static_assert(sizeof(Request) % NLMSG_ALIGNTO == 0, "requests lie back to back in one datagram");
  if (send(fd_.get(), requests.data(), keys.size() * sizeof(Request), 0) < 0) {
    return Status(StatusCode::kUnavailable, std::string("sock_diag request failed: ") + std::strerror(errno));
  }
  return Receive(first, queues);
}

Status SockDiag::Receive(std::uint32_t first_sequence, std::span<SocketQueue> queues) {
  std::size_t open = queues.size();
  alignas(nlmsghdr) std::array<std::byte, 8 * kAnswerMax> buffer;
  while (open > 0) {
    const ssize_t got = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Status(StatusCode::kUnavailable, std::string("sock_diag answer: ") + std::strerror(errno));
    std::size_t at = 0;
    const auto size = static_cast<std::size_t>(got);
    nlmsghdr header;
    while (at + sizeof(header) <= size && open > 0) {
      std::memcpy(&header, buffer.data() + at, sizeof(header));
      if (header.nlmsg_len < sizeof(header) || at + header.nlmsg_len > size) break;
      const std::uint32_t index = header.nlmsg_seq - first_sequence;
      if (index < queues.size()) {  // Anything else answers a request given up before.
        --open;
        if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY) {
          ReadAnswer(buffer.data() + at + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN, &queues[index]);
        }
      }
      at += NLMSG_ALIGN(header.nlmsg_len);
    }
  }
  return Status::Ok();
}

QueueSample SockDiag::Sum(std::span<const SocketQueue> queues) {
  QueueSample sum;
  for (const SocketQueue& queue : queues) {
    if (!queue.found) continue;
    // The last odd segment may wait 40 ms for its delayed acknowledgement: up to three segments count as nothing.
    const Bytes spare = 3 * queue.segment;
    if (queue.outstanding <= spare) continue;
    sum.queued += queue.outstanding - spare;
    sum.unsent += queue.unsent;
    if (queue.min_rtt != 0 && (sum.min_rtt == 0 || queue.min_rtt < sum.min_rtt)) sum.min_rtt = queue.min_rtt;
  }
  return sum;
}

}  // namespace weir::agents
