#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <string>

namespace weir::scheduler {

/// Serves one connection of somebody who asks for status: /v1/status, /v1/timeline, /livez, /readyz. Anything else is a
/// JSON error with the right code. Bounded: 8 KiB a request, 5 s of patience, 1,000 requests a connection.
/// `answer` maps a path to a JSON body; empty if there is no such path. Thread: the loop's.
boost::asio::awaitable<void> ServeHttp(boost::asio::ip::tcp::socket socket,
                                       std::function<std::string(std::string_view path)> answer);

}  // namespace weir::scheduler
