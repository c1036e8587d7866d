#include "coflow/wire/http_shell.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <utility>

#include "coflow/wire/listen_shell.h"

namespace weir::wire {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t kRequestBytesMax = 8 * 1024;
constexpr int kRequestsMax = 1000;
constexpr auto kPatience = std::chrono::seconds(5);

using asio::ip::tcp;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

Response Respond(const Request& request, http::status status, HttpPage page) {
  Response response(status, request.version());
  response.set(http::field::content_type, page.type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  response.body() = std::move(page.body);
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();
  return response;
}

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(asio::io_context& io, std::string known, std::function<HttpPage(std::string_view)> pages)
      : loop(io), acceptor(io), paths(std::move(known)), answer(std::move(pages)) {}

  Response AnswerTo(const Request& request) const {
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      Response response =
          Respond(request, http::status::method_not_allowed, {"{\"error\":\"only GET and HEAD are allowed here\"}\n"});
      response.set(http::field::allow, "GET, HEAD");
      return response;
    }
    const std::string target(request.target());
    HttpPage page = answer(target.substr(0, target.find('?')));
    if (!page.body.empty()) return Respond(request, http::status::ok, std::move(page));
    return Respond(request, http::status::not_found, {"{\"error\":\"no such path; there are " + paths + "\"}\n"});
  }

  asio::awaitable<void> ServeOne(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer(kRequestBytesMax);
    try {
      for (int i = 0; i < kRequestsMax; ++i) {
        http::request_parser<http::empty_body> parser;
        parser.header_limit(kRequestBytesMax);
        stream.expires_after(kPatience);
        co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
        const Response response = AnswerTo(parser.get());
        co_await http::async_write(stream, response, asio::use_awaitable);
        if (!response.keep_alive()) break;
      }
    } catch (const boost::system::system_error&) {
      // The peer left, was too slow or spoke no HTTP: nothing is owed to it.
    }
    beast::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  asio::awaitable<void> Accept() {
    const auto self = shared_from_this();
    for (;;) {
      tcp::socket socket = co_await AcceptNext(acceptor);
      if (connections == kConnectionsMax) continue;
      ++connections;
      asio::co_spawn(loop, ServeOne(std::move(socket)), [self](std::exception_ptr) { --self->connections; });
    }
  }

  asio::io_context& loop;
  tcp::acceptor acceptor;
  const std::string paths;
  const std::function<HttpPage(std::string_view)> answer;
  std::size_t connections = 0;
};

HttpServer::HttpServer(asio::io_context& loop, std::string paths, std::function<HttpPage(std::string_view)> answer)
    : impl_(std::make_shared<Impl>(loop, std::move(paths), std::move(answer))) {}
HttpServer::~HttpServer() = default;

Status HttpServer::Listen(const std::string& address, bool plaintext) {
  return ListenOn(address, plaintext, &impl_->acceptor);
}

std::string HttpServer::address() const {
  return impl_->acceptor.is_open() ? EndpointText(impl_->acceptor.local_endpoint()) : "none";
}

void HttpServer::Serve() {
  if (impl_->acceptor.is_open()) asio::co_spawn(impl_->loop, impl_->Accept(), asio::detached);
}

}  // namespace weir::wire
