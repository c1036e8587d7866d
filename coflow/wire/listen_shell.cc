#include "coflow/wire/listen_shell.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "coflow/log.h"

namespace weir::wire {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);

Result<tcp::endpoint> ParseEndpoint(const std::string& text, bool plaintext) {
  const std::size_t colon = text.rfind(':');
  const std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(bracketed ? host.substr(1, host.size() - 2) : host, error);
  int port = -1;
  if (!error) {
    const std::string digits = text.substr(colon + 1);
    const bool numeric =
        !digits.empty() && digits.size() <= 5 && digits.find_first_not_of("0123456789") == std::string::npos;
    port = numeric ? std::stoi(digits) : -1;
  }
  if (port < 0 || port > 65535) {
    return Error(StatusCode::kInvalidArgument,
                 "\"" + text + "\" is not an address and port; write for example 127.0.0.1:7070 or [::1]:7070");
  }
  if (!address.is_loopback() && !plaintext) {
    return Error(StatusCode::kInvalidArgument,
                 text +
                     " can be reached from other hosts and there is no TLS yet; add --plaintext if that network is "
                     "trusted, or use 127.0.0.1");
  }
  return tcp::endpoint(address, static_cast<unsigned short>(port));
}

}  // namespace

Status ListenOn(const std::string& address, bool plaintext, tcp::acceptor* acceptor) {
  const auto endpoint = ParseEndpoint(address, plaintext);
  if (!endpoint) return endpoint.error();
  boost::system::error_code error;
  acceptor->open(endpoint->protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(*endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (!error) return Status::Ok();
  return Status(StatusCode::kUnavailable, "cannot listen on " + address + ": " + error.message());
}

asio::awaitable<tcp::socket> AcceptNext(tcp::acceptor& acceptor) {
  for (;;) {
    boost::system::error_code error;
    tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!error) co_return socket;
    log::Warn("accept_failed", {{"reason", error.message()}});
    asio::steady_timer pause(acceptor.get_executor(), kAcceptPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

std::string EndpointText(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

}  // namespace weir::wire
