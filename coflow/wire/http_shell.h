#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "coflow/status.h"

namespace boost::asio {
class io_context;
}

namespace weir::wire {

/// What is at a path.
struct HttpPage {
  std::string body;  ///< Empty: there is no such path.
  const char* type = "application/json";
};

/// The pages of one of our services, for people and for what gathers metrics: GET and HEAD. Anything else is a JSON
/// error with the right code. Not for more than looking: no request changes anything.
///
/// Owned by a service's shell; outlived by the loop. Thread: the loop's. Limits: kConnectionsMax connections (more are
/// closed at once), 8 KiB a request, 5 s of patience, 1,000 requests a connection.
class HttpServer {
 public:
  static constexpr std::size_t kConnectionsMax = 64;

  /// `paths`: those there are, for the message to who asks for another one.
  HttpServer(boost::asio::io_context& loop, std::string paths, std::function<HttpPage(std::string_view path)> answer);
  ~HttpServer();
  /// Errors as of ListenOn. Connections wait until Serve.
  Status Listen(const std::string& address, bool plaintext);
  /// "none" where it does not listen.
  std::string address() const;
  /// No effect where it does not listen.
  void Serve();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Shared with its coroutines.
};

}  // namespace weir::wire
