#include "transport/rdma/side.h"

#include <sys/socket.h>

#include <cerrno>

namespace weir::transport::rdma {

Result<Interface> SideInterface(const Port& port, const GidEntry& own, const RdmaOptions& options) {
  if (port.ethernet()) return Interface{port.name(), own.interface_index, AddressOf(own.gid)};
  const auto found = ListInterfaces();
  if (!found) return tl::unexpected(found.error());
  const auto selected = SelectInterfaces(*found, options.interfaces, "");
  if (!selected) return tl::unexpected(selected.error());
  return selected->front();
}

void TuneSide(const tcp::Socket& socket, const RdmaOptions& options) {
  TcpOptions tuned;
  tuned.dead_after = options.dead_after;
  if (options.traffic_classes[0] != 0) tuned.traffic_class = options.traffic_classes[0];
  tcp::Tune(socket, tcp::StreamKind::kControl, tuned);
}

bool ReadSide(const tcp::Socket& socket, std::span<std::byte> bytes, std::size_t* got) {
  const ssize_t read = recv(socket.get(), bytes.data() + *got, bytes.size() - *got, MSG_DONTWAIT);
  if (read > 0) *got += static_cast<std::size_t>(read);
  return read > 0 || (read < 0 && (errno == EAGAIN || errno == EINTR)) || *got == bytes.size();
}

}  // namespace weir::transport::rdma
