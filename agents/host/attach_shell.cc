#include "agents/host/attach_shell.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "coflow/job.h"
#include "coflow/log.h"

namespace weir::agents {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;

namespace {

constexpr double kWeightMax = 1e6;

template <std::size_t N>
Result<std::string> ReadText(const char (&field)[N], const char* name) {
  const void* end = std::memchr(field, 0, N);
  if (end == nullptr) return Error(StatusCode::kInvalidArgument, std::string(name) + " does not end within its field");
  std::string text(field);
  const bool printable = std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  if (!printable)
    return Error(StatusCode::kInvalidArgument, std::string(name) + " has characters that cannot be shown");
  return text;
}

/// Makes the folder of the socket if only that is missing, as /run/weir is after a boot.
Status MakeFolder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return Status::Ok();
  const std::string folder = path.substr(0, slash);
  struct stat info;
  if (stat(folder.c_str(), &info) == 0 || mkdir(folder.c_str(), 0755) == 0) return Status::Ok();
  return Status(StatusCode::kUnavailable, "cannot make " + folder + " for the socket: " + std::strerror(errno) +
                                              "; make it, or choose another --socket");
}

/// Removes a socket file that nobody serves. Fails if somebody does.
Status ClearStaleSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return Status::Ok();
  if (!S_ISSOCK(info.st_mode)) {
    return Status(StatusCode::kAlreadyExists,
                  path + " exists and is not a socket; remove it or choose another --socket");
  }
  // Not blocking: an agent that is frozen has a full queue in the end.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int error = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
  close(fd);
  if (error == 0 || error == EAGAIN)
    return Status(StatusCode::kAlreadyExists, "another agent serves " + path + "; stop it or choose another --socket");
  if (error == ECONNREFUSED && unlink(path.c_str()) == 0) return Status::Ok();
  return Status(StatusCode::kUnavailable, "cannot replace " + path + ": " +
                                              std::strerror(error == ECONNREFUSED ? errno : error) +
                                              "; remove it, or choose another --socket");
}

Status SendReply(int fd, const client::AttachReply& reply, const int* fds, std::size_t count) {
  iovec part{const_cast<client::AttachReply*>(&reply), sizeof(reply)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  }
  // 128 bytes into an empty Unix socket: taken whole, or the peer has gone.
  const ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(sizeof(reply))) return Status::Ok();
  return Status(StatusCode::kUnavailable, std::string("attach reply not taken: ") + std::strerror(errno));
}

client::AttachReply MakeReply(std::uint32_t status, std::string_view reason) {
  client::AttachReply reply{};
  reply.magic = client::kSegmentMagic;
  reply.version_major = client::kSegmentVersionMajor;
  reply.version_minor = client::kSegmentVersionMinor;
  reply.status = status;
  reply.size = sizeof(client::Segment);
  std::memcpy(reply.reason, reason.data(), std::min(reason.size(), sizeof(reply.reason) - 1));
  return reply;
}

}  // namespace

Result<JobInfo> ReadAttachRequest(const client::AttachRequest& request) {
  JobInfo job;
  auto name = ReadText(request.job, "WEIR_JOB");
  if (!name) return tl::unexpected<Status>(name.error());
  if (name->empty()) return Error(StatusCode::kInvalidArgument, "WEIR_JOB is empty; name the job");
  auto tenant = ReadText(request.tenant, "WEIR_TENANT");
  if (!tenant) return tl::unexpected<Status>(tenant.error());
  auto job_class = ReadText(request.job_class, "WEIR_CLASS");
  if (!job_class) return tl::unexpected<Status>(job_class.error());
  if (auto known = ParseJobClass(*job_class); !known) {
    return Error(StatusCode::kInvalidArgument, "WEIR_CLASS: " + known.error().message());
  }
  if (!std::isfinite(request.weight) || request.weight < 0 || request.weight > kWeightMax) {
    return Error(StatusCode::kInvalidArgument, "WEIR_WEIGHT must be between 0 and 1e6");
  }
  job.name = std::move(*name);
  job.tenant = std::move(*tenant);
  job.job_class = std::move(*job_class);
  job.weight = request.weight;
  job.gpus = request.gpus;
  return job;
}

struct AttachServer::Impl : std::enable_shared_from_this<AttachServer::Impl> {
  /// One peer that has not said all it wants yet.
  struct Peer {
    Peer(asio::io_context& loop, stream_protocol::socket the_socket) : socket(std::move(the_socket)), timer(loop) {}
    stream_protocol::socket socket;
    asio::steady_timer timer;
    std::string inbox;
    std::array<char, 4096> buffer;
    std::string answer;
  };

  Impl(asio::io_context& io, Handler the_handler) : loop(io), handler(std::move(the_handler)), acceptor(io) {}

  asio::io_context& loop;
  Handler handler;
  stream_protocol::acceptor acceptor;
  std::string path;
  std::size_t pending = 0;
  std::uint64_t refused = 0;

  void Accept();
  void OnAccepted(stream_protocol::socket socket);
  void Read(const std::shared_ptr<Peer>& peer);
  /// True once the peer has been served or is not worth waiting for.
  bool Serve(const std::shared_ptr<Peer>& peer);
  void Attach(Peer& peer);
  void Refuse(Peer& peer, std::uint32_t status, const std::string& reason);
  void Answer(const std::shared_ptr<Peer>& peer);
  static PeerCredentials Credentials(Peer& peer);
};

void AttachServer::Impl::Accept() {
  acceptor.async_accept([self = shared_from_this()](error_code error, stream_protocol::socket socket) {
    if (error == asio::error::operation_aborted || !self->acceptor.is_open()) return;
    if (!error) {
      self->OnAccepted(std::move(socket));
      return self->Accept();
    }
    // Out of descriptors: wait for some to come back instead of spinning on a connection that cannot be taken.
    auto timer = std::make_shared<asio::steady_timer>(self->loop, std::chrono::milliseconds(100));
    timer->async_wait([self, timer](error_code) {
      if (self->acceptor.is_open()) self->Accept();
    });
  });
}

void AttachServer::Impl::OnAccepted(stream_protocol::socket socket) {
  if (pending >= kPendingMax) {
    ++refused;
    return;  // Closed at once; the process runs unmanaged.
  }
  ++pending;
  auto peer = std::make_shared<Peer>(loop, std::move(socket));
  error_code ignored;
  peer->socket.non_blocking(true, ignored);
  peer->timer.expires_after(std::chrono::nanoseconds(kPatience));
  peer->timer.async_wait([peer](error_code error) {
    error_code also_ignored;
    if (!error) peer->socket.close(also_ignored);
  });
  Read(peer);
}

void AttachServer::Impl::Read(const std::shared_ptr<Peer>& peer) {
  peer->socket.async_read_some(asio::buffer(peer->buffer),
                               [self = shared_from_this(), peer](error_code error, std::size_t got) {
                                 peer->inbox.append(peer->buffer.data(), got);
                                 if (!error && !self->Serve(peer)) return self->Read(peer);
                                 --self->pending;
                                 peer->timer.cancel();
                               });
}

bool AttachServer::Impl::Serve(const std::shared_ptr<Peer>& peer) {
  if (peer->inbox.empty()) return false;
  if (peer->inbox.front() == '{') {
    if (peer->inbox.find('\n') == std::string::npos) return peer->inbox.size() > kLineMax;
    Answer(peer);
    return true;
  }
  if (peer->inbox.size() < sizeof(client::AttachRequest)) return false;
  Attach(*peer);
  return true;
}

PeerCredentials AttachServer::Impl::Credentials(Peer& peer) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  getsockopt(peer.socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return PeerCredentials{credentials.pid, credentials.uid};
}

void AttachServer::Impl::Attach(Peer& peer) {
  client::AttachRequest request;
  std::memcpy(&request, peer.inbox.data(), sizeof(request));
  const int fd = peer.socket.native_handle();
  if (request.magic != client::kSegmentMagic || request.version_major != client::kSegmentVersionMajor) {
    return Refuse(peer, 1, "this agent speaks segment version " + std::to_string(client::kSegmentVersionMajor));
  }
  Result<JobInfo> job = ReadAttachRequest(request);
  Result<Attached> attached =
      job ? handler.on_attach(Credentials(peer), *job) : Result<Attached>(tl::unexpected<Status>(job.error()));
  if (!attached) return Refuse(peer, 2, attached.error().message());
  const int fds[2] = {attached->memfd, attached->doorbell};
  handler.on_attach_done(attached->process, SendReply(fd, MakeReply(0, ""), fds, 2).ok());
}

/// A process that was refused asks again every few seconds at the most.
void AttachServer::Impl::Refuse(Peer& peer, std::uint32_t status, const std::string& reason) {
  ++refused;
  log::Warn("attach_refused", {{"pid", Credentials(peer).pid}, {"reason", reason}});
  static_cast<void>(SendReply(peer.socket.native_handle(), MakeReply(status, reason), nullptr, 0));
}

void AttachServer::Impl::Answer(const std::shared_ptr<Peer>& peer) {
  const std::string line = peer->inbox.substr(0, peer->inbox.find('\n'));
  peer->answer = handler.on_request(Credentials(*peer), line) + "\n";
  auto timer = std::make_shared<asio::steady_timer>(loop, std::chrono::nanoseconds(kPatience));
  timer->async_wait([peer](error_code error) {
    error_code ignored;
    if (!error) peer->socket.close(ignored);
  });
  asio::async_write(peer->socket, asio::buffer(peer->answer), [peer, timer](error_code, std::size_t) {
    timer->cancel();
    error_code ignored;
    peer->socket.close(ignored);
  });
}

AttachServer::AttachServer(asio::io_context& loop, Handler handler)
    : impl_(std::make_shared<Impl>(loop, std::move(handler))) {}

AttachServer::~AttachServer() {
  Stop();
}

Status AttachServer::Listen(const std::string& path, std::uint32_t mode) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Status(StatusCode::kInvalidArgument, "--socket '" + path + "' must have 1 to 107 characters");
  }
  if (Status made = MakeFolder(path); !made.ok()) return made;
  if (Status cleared = ClearStaleSocket(path); !cleared.ok()) return cleared;
  error_code error;
  impl_->acceptor.open(stream_protocol(), error);
  if (!error) impl_->acceptor.bind(stream_protocol::endpoint(path), error);
  if (!error) impl_->acceptor.listen(128, error);
  if (error) {
    return Status(StatusCode::kUnavailable,
                  "cannot listen at " + path + ": " + error.message() + "; choose another --socket");
  }
  if (chmod(path.c_str(), mode) != 0) {
    return Status(StatusCode::kPermissionDenied, "cannot set the mode of " + path + ": " + std::strerror(errno));
  }
  impl_->path = path;
  impl_->Accept();
  return Status::Ok();
}

void AttachServer::Stop() {
  if (impl_->path.empty()) return;
  error_code ignored;
  impl_->acceptor.close(ignored);
  unlink(impl_->path.c_str());
  impl_->path.clear();
}

std::uint64_t AttachServer::refused() const {
  return impl_->refused;
}

}  // namespace weir::agents
