#include "scheduler/coordinator/shell.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <map>
#include <utility>

#include "coflow/log.h"
#include "coflow/wire/frame.h"
#include "coflow/wire/http_shell.h"
#include "coflow/wire/listen_shell.h"
#include "coflow/wire/weir.pb.h"
#include "scheduler/coordinator/engine.h"
#include "scheduler/coordinator/status_json.h"

namespace weir::scheduler {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

Nanoseconds Now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Higher with every start, whatever the host: agents obey the newest coordinator.
std::uint64_t NewEpoch() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1));
}

}  // namespace

struct CoordinatorShell::Impl {
  /// One agent's socket. Shared with its reading and writing coroutines; `open` says if it is still of use.
  struct Connection {
    explicit Connection(tcp::socket s) : socket(std::move(s)) {}
    tcp::socket socket;
    std::string inbox;
    std::string outbox;
    std::string flying;  ///< Being written.
    bool open = true;
  };

  Impl(const Topology& topology, std::unique_ptr<Policy> policy, ShellOptions shell_options)
      : options(std::move(shell_options)), engine(topology, std::move(policy), NewEpoch()) {}

  asio::awaitable<void> AcceptAgents() {
    for (;;) {
      auto connection = std::make_shared<Connection>(co_await wire::AcceptNext(agents));
      boost::system::error_code ignored;
      connection->socket.set_option(tcp::no_delay(true), ignored);
      connection->socket.non_blocking(true, ignored);
      const ConnectionId id(++last_connection);
      const auto peer = connection->socket.remote_endpoint(ignored);
      connections[id] = connection;
      engine.OnConnect(Now(), id, ignored ? "unknown" : wire::EndpointText(peer));
      asio::co_spawn(loop, ReadAgent(id, connection), asio::detached);
      FlushSoon();
    }
  }

  asio::awaitable<void> ReadAgent(ConnectionId id, std::shared_ptr<Connection> connection) {
    std::array<char, 64 * 1024> buffer;
    try {
      while (connection->open) {
        const std::size_t got = co_await connection->socket.async_read_some(asio::buffer(buffer), asio::use_awaitable);
        connection->inbox.append(buffer.data(), got);
        if (connection->open && !ParseInbox(id, *connection)) break;
        FlushSoon();
      }
    } catch (const boost::system::system_error&) {
      // The agent left.
    }
    Close(id);
    engine.OnDisconnect(Now(), id);
    FlushSoon();
  }

  bool ParseInbox(ConnectionId id, Connection& connection) {
    std::size_t used = 0;
    while (connection.open) {
      const auto frame = wire::NextFrame(std::string_view(connection.inbox).substr(used));
      if (!frame) {
        log::Warn("agent_spoke_garbage", {{"reason", frame.error().message()}});
        return false;
      }
      if (!frame->complete) break;
      used += frame->size;
      wire::AgentMessage message;
      if (!message.ParseFromArray(frame->payload.data(), static_cast<int>(frame->payload.size()))) {
        log::Warn("agent_spoke_garbage", {{"reason", "frame is no AgentMessage"}});
        return false;
      }
      engine.OnMessage(Now(), id, message);
    }
    connection.inbox.erase(0, used);
    return true;
  }

  /// Decides once this turn of the loop has taken everything that has arrived.
  void FlushSoon() {
    if (std::exchange(flush_posted, true)) return;
    asio::post(loop, [this] { Flush(); });
  }

  void Flush() {
    flush_posted = false;
    for (const Action& action : engine.Step(Now())) Carry(action);
    const Nanoseconds next = engine.next_step();
    if (next == kNever) return;
    timer.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)));
    timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) Flush();
    });
  }

  void Carry(const Action& action) {
    switch (action.kind) {
      case Action::Kind::kLog:
        return log::Info(action.text, {{"about", action.detail}});
      case Action::Kind::kDrop:
        return Close(action.connection);
      case Action::Kind::kSend:
        break;
    }
    const auto found = connections.find(action.connection);
    if (found == connections.end()) return;
    const std::shared_ptr<Connection> connection = found->second;
    wire::AppendFrame(action.message->SerializeAsString(), &connection->outbox);
    Write(action.connection, connection);
  }

  /// Hands the kernel what it takes at once; a coroutine waits for the rest.
  void Write(ConnectionId id, const std::shared_ptr<Connection>& connection) {
    if (!connection->flying.empty()) {
      if (connection->outbox.size() > kOutboxMax) {
        log::Warn("agent_too_slow", {{"pending_bytes", connection->outbox.size()}});
        Close(id);
      }
      return;
    }
    const ssize_t sent = ::send(connection->socket.native_handle(), connection->outbox.data(),
                                connection->outbox.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) connection->outbox.erase(0, static_cast<std::size_t>(sent));
    if (connection->outbox.empty()) return;
    connection->flying.swap(connection->outbox);
    asio::co_spawn(loop, WriteRest(id, connection), asio::detached);
  }

  asio::awaitable<void> WriteRest(ConnectionId id, std::shared_ptr<Connection> connection) {
    try {
      while (!connection->flying.empty()) {
        co_await asio::async_write(connection->socket, asio::buffer(connection->flying), asio::use_awaitable);
        connection->flying.clear();
        connection->flying.swap(connection->outbox);
      }
    } catch (const boost::system::system_error&) {
      Close(id);
    }
  }

  void Close(ConnectionId id) {
    const auto found = connections.find(id);
    if (found == connections.end()) return;
    boost::system::error_code ignored;
    found->second->open = false;
    found->second->socket.shutdown(tcp::socket::shutdown_both, ignored);
    connections.erase(found);
  }

  wire::HttpPage PageAt(std::string_view path) const {
    if (path == "/v1/status") return {StatusJson(engine, Now())};
    if (path == "/v1/timeline") return {TimelineJson(engine)};
    if (path == "/livez" || path == "/readyz") return {"{\"ok\":true}\n"};
    return {};
  }

  const ShellOptions options;
  asio::io_context loop{1};
  tcp::acceptor agents{loop};
  wire::HttpServer http{loop, "/v1/status, /v1/timeline, /livez and /readyz",
                        [this](std::string_view path) { return PageAt(path); }};
  asio::steady_timer timer{loop};
  asio::signal_set signals{loop, SIGINT, SIGTERM};
  CoordinatorEngine engine;
  std::map<ConnectionId, std::shared_ptr<Connection>> connections;
  std::uint64_t last_connection = 0;
  bool flush_posted = false;
};

CoordinatorShell::CoordinatorShell(const Topology& topology, std::unique_ptr<Policy> policy, ShellOptions options)
    : impl_(std::make_unique<Impl>(topology, std::move(policy), std::move(options))) {}
CoordinatorShell::~CoordinatorShell() = default;

Status CoordinatorShell::Listen() {
  const ShellOptions& options = impl_->options;
  Status status = wire::ListenOn(options.listen, options.plaintext, &impl_->agents);
  if (status.ok() && !options.http.empty()) status = impl_->http.Listen(options.http, options.plaintext);
  return status;
}

std::string CoordinatorShell::agents_address() const {
  return wire::EndpointText(impl_->agents.local_endpoint());
}

std::string CoordinatorShell::http_address() const {
  return impl_->http.address();
}

void CoordinatorShell::Run() {
  asio::co_spawn(impl_->loop, impl_->AcceptAgents(), asio::detached);
  impl_->http.Serve();
  impl_->signals.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    log::Info("stopping", {{"signal", signal}});
    impl_->loop.stop();
  });
  impl_->Flush();
  impl_->loop.run();
}

}  // namespace weir::scheduler
