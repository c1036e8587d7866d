#include "scheduler/coordinator/http_shell.h"

#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <utility>

namespace weir::scheduler {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t kRequestBytesMax = 8 * 1024;
constexpr int kRequestsMax = 1000;
constexpr auto kPatience = std::chrono::seconds(5);

using Response = http::response<http::string_body>;

Response Respond(const http::request<http::empty_body>& request, http::status status, std::string body) {
  Response response(status, request.version());
  response.set(http::field::content_type, "application/json");
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  response.body() = std::move(body);
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();
  return response;
}

Response Answer(const http::request<http::empty_body>& request,
                const std::function<std::string(std::string_view)>& answer) {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Response response =
        Respond(request, http::status::method_not_allowed, "{\"error\":\"only GET and HEAD are allowed here\"}\n");
    response.set(http::field::allow, "GET, HEAD");
    return response;
  }
  const std::string target(request.target());
  const std::string path = target.substr(0, target.find('?'));
  std::string body = answer(path);
  if (!body.empty()) return Respond(request, http::status::ok, std::move(body));
  return Respond(request, http::status::not_found,
                 "{\"error\":\"no such path; there are /v1/status, /v1/timeline, /livez and /readyz\"}\n");
}

}  // namespace

asio::awaitable<void> ServeHttp(asio::ip::tcp::socket socket, std::function<std::string(std::string_view)> answer) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer(kRequestBytesMax);
  try {
    for (int i = 0; i < kRequestsMax; ++i) {
      http::request_parser<http::empty_body> parser;
      parser.header_limit(kRequestBytesMax);
      stream.expires_after(kPatience);
      co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
      const Response response = Answer(parser.get(), answer);
      co_await http::async_write(stream, response, asio::use_awaitable);
      if (!response.keep_alive()) break;
    }
  } catch (const boost::system::system_error&) {
    // The peer left, was too slow or spoke no HTTP: nothing is owed to it.
  }
  beast::error_code ignored;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace weir::scheduler
