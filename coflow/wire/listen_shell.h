#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "coflow/status.h"

/// How services of ours listen on TCP. Thread: that of the acceptor's loop.
namespace weir::wire {

/// Binds to "ADDR:PORT" or "[V6]:PORT" and listens; port 0 picks one. Error kInvalidArgument for what is no address, or
/// one that other hosts can reach unless `plaintext`; kUnavailable if it is taken.
Status ListenOn(const std::string& address, bool plaintext, boost::asio::ip::tcp::acceptor* acceptor);

/// The next connection. An error, as when descriptors run out, passes: the port must not go deaf because of it. The
/// acceptor outlives the call.
boost::asio::awaitable<boost::asio::ip::tcp::socket> AcceptNext(boost::asio::ip::tcp::acceptor& acceptor);

/// As ListenOn takes it.
std::string EndpointText(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace weir::wire
