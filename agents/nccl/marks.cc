#include "agents/nccl/marks.h"

#include <netinet/in.h>
#include <sys/socket.h>

namespace weir::nccl {
namespace {

constexpr std::uint32_t kMarkBit = 1u << 31;

bool Says(int traffic_class) {
  return traffic_class >= 0 && traffic_class <= 255;
}

}  // namespace

Marking ChooseMarking(ClassFrom first, int application, int environment) {
  if (first == ClassFrom::kApplication && Says(application)) return {application, false};
  if (first == ClassFrom::kEnvironment && Says(environment)) return {environment, false};
  return {Says(application) ? application : Says(environment) ? environment : -1, true};
}

bool IsMark(std::uint32_t marks) {
  return (marks & kMarkBit) != 0;
}

void SetTrafficClass(int fd, int traffic_class) {
  setsockopt(fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof traffic_class);
  setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof traffic_class);
}

/// IP_TOS sets the socket's priority too, so that comes last.
void SetMarks(int fd, std::uint32_t marks) {
  SetTrafficClass(fd, static_cast<int>(marks & 0xff));
  const int priority = static_cast<int>(marks >> 8 & 0xff);
  setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
}

}  // namespace weir::nccl
