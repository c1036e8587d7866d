#include "agents/host/coordinator_link.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "coflow/wire/frame.h"

namespace weir::agents {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

Result<std::pair<std::string, std::string>> SplitAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const auto wrong = [&] {
    return Error(StatusCode::kInvalidArgument,
                 "'" + address + "' is not HOST:PORT or [V6]:PORT with a port from 1 to 65535, such as 10.0.0.1:7070");
  };
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return wrong();
  std::string host = address.substr(0, colon);
  std::string port = address.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != std::string::npos || port.size() > 5) return wrong();
  if (const int number = std::stoi(port); number < 1 || number > 65535) return wrong();
  if (host.front() == '[') {
    if (host.back() != ']' || host.size() < 3) return wrong();
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return wrong();
  }
  return std::pair(std::move(host), std::move(port));
}

struct CoordinatorLink::Impl : std::enable_shared_from_this<CoordinatorLink::Impl> {
  static constexpr int kUserTimeout_ms = 2000;  ///< A peer that acknowledges nothing for so long is gone.
  static constexpr auto kConnectPatience = std::chrono::seconds(2);

  Impl(asio::io_context& io, std::string where, Handler the_handler)
      : loop(io), address(std::move(where)), handler(std::move(the_handler)), resolver(io), socket(io), timer(io) {}

  asio::io_context& loop;
  const std::string address;
  Handler handler;
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  enum class State { kStopped, kConnecting, kConnected, kWaiting } state = State::kStopped;
  std::uint64_t attempt = 0;  ///< Makes completions of an earlier connection recognisable.
  Nanoseconds backoff = kBackoffMin;
  std::string inbox;
  std::string outbox;
  bool write_pending = false;

  void Connect();
  void OnConnected();
  void WaitReadable();
  void OnReadable(error_code error);
  void Parse();
  void Flush();
  void WaitWritable();
  void Drop(const std::string& reason);
  void Stop();
  bool Current(std::uint64_t number) const { return number == attempt && state != State::kStopped; }
};

void CoordinatorLink::Impl::Connect() {
  state = State::kConnecting;
  const std::uint64_t number = ++attempt;
  const auto parts = SplitAddress(address);
  if (!parts) return Drop(parts.error().message());
  auto self = shared_from_this();
  timer.expires_after(kConnectPatience);
  timer.async_wait([self, number](error_code error) {
    if (!error && self->Current(number) && self->state == State::kConnecting) self->Drop("no answer within 2 s");
  });
  resolver.async_resolve(
      parts->first, parts->second, [self, number](error_code error, tcp::resolver::results_type ends) {
        if (!self->Current(number)) return;
        if (error) return self->Drop(error.message());
        asio::async_connect(self->socket, ends, [self, number](error_code failed, const tcp::endpoint&) {
          if (!self->Current(number)) return;
          if (failed) return self->Drop(failed.message());
          self->OnConnected();
        });
      });
}

void CoordinatorLink::Impl::OnConnected() {
  state = State::kConnected;
  timer.cancel();
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeout_ms, sizeof(kUserTimeout_ms));
  inbox.clear();
  outbox.clear();
  WaitReadable();
  handler.on_connected();
}

void CoordinatorLink::Impl::WaitReadable() {
  socket.async_wait(tcp::socket::wait_read, [self = shared_from_this(), number = attempt](error_code error) {
    if (self->Current(number)) self->OnReadable(error);
  });
}

void CoordinatorLink::Impl::OnReadable(error_code error) {
  if (error) return Drop(error.message());
  std::array<char, 65536> buffer;
  const ssize_t got = recv(socket.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got == 0) return Drop("closed by the coordinator");
  if (got < 0 && errno != EAGAIN && errno != EINTR) return Drop(std::strerror(errno));
  if (got > 0) {
    inbox.append(buffer.data(), static_cast<std::size_t>(got));
    const std::uint64_t number = attempt;
    Parse();
    if (!Current(number) || state != State::kConnected) return;
  }
  WaitReadable();
}

void CoordinatorLink::Impl::Parse() {
  const std::uint64_t number = attempt;
  std::size_t used = 0;
  while (Current(number) && state == State::kConnected) {
    const std::string_view rest = std::string_view(inbox).substr(used);
    const auto frame = wire::NextFrame(rest);
    if (!frame) return Drop(frame.error().message());
    if (!frame->complete) break;
    used += frame->size;
    backoff = kBackoffMin;  // Only a peer that speaks the protocol earns a quick reconnect.
    handler.on_frame(frame->payload);
  }
  if (Current(number)) inbox.erase(0, used);
}

void CoordinatorLink::Impl::Flush() {
  std::size_t sent = 0;
  while (sent < outbox.size()) {
    const ssize_t wrote =
        send(socket.native_handle(), outbox.data() + sent, outbox.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) return Drop(std::strerror(errno));
    sent += static_cast<std::size_t>(wrote);
  }
  outbox.erase(0, sent);
  if (outbox.size() > kPendingMax) return Drop("the coordinator takes nothing more");
  if (!outbox.empty()) WaitWritable();
}

void CoordinatorLink::Impl::WaitWritable() {
  if (write_pending) return;
  write_pending = true;
  socket.async_wait(tcp::socket::wait_write, [self = shared_from_this(), number = attempt](error_code error) {
    if (!self->Current(number)) return;
    self->write_pending = false;
    if (error) return self->Drop(error.message());
    self->Flush();
  });
}

void CoordinatorLink::Impl::Drop(const std::string& reason) {
  if (state == State::kStopped || state == State::kWaiting) return;
  const bool was_connected = state == State::kConnected;
  state = State::kWaiting;
  const std::uint64_t number = ++attempt;
  error_code ignored;
  resolver.cancel();
  socket.close(ignored);
  write_pending = false;
  timer.expires_after(std::chrono::nanoseconds(backoff));
  timer.async_wait([self = shared_from_this(), number](error_code error) {
    if (!error && self->Current(number)) self->Connect();
  });
  backoff = std::min(2 * backoff, kBackoffMax);
  (was_connected ? handler.on_disconnected : handler.on_unreachable)(reason);
}

void CoordinatorLink::Impl::Stop() {
  state = State::kStopped;
  ++attempt;
  error_code ignored;
  resolver.cancel();
  socket.close(ignored);
  timer.cancel();
}

CoordinatorLink::CoordinatorLink(asio::io_context& loop, const std::string& address, Handler handler)
    : impl_(std::make_shared<Impl>(loop, address, std::move(handler))) {}

CoordinatorLink::~CoordinatorLink() {
  Stop();
}

void CoordinatorLink::Start() {
  impl_->Connect();
}

void CoordinatorLink::Send(const std::vector<std::string>& messages) {
  if (!connected()) return;
  for (const std::string& message : messages) wire::AppendFrame(message, &impl_->outbox);
  if (!impl_->write_pending) impl_->Flush();
}

void CoordinatorLink::Drop(const std::string& reason) {
  impl_->backoff = kBackoffMax;
  impl_->Drop(reason);
}

void CoordinatorLink::Stop() {
  impl_->Stop();
}

bool CoordinatorLink::connected() const {
  return impl_->state == Impl::State::kConnected;
}

}  // namespace weir::agents
