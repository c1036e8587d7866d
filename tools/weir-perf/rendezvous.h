#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "coflow/status.h"
#include "coflow/unique_fd.h"
#include "transport/transport.h"

namespace weir::tools {

/// How the two ends of a measurement agree on what comes next: lines of text over a plain connection beside the
/// transport. Blocking, with a patience of kPatience_s; lines of at most kLineMax. One thread.
class Rendezvous {
 public:
  static constexpr int kPatience_s = 60;
  static constexpr std::size_t kLineMax = 4096;

  /// Errors: kUnavailable with the address.
  static Result<std::unique_ptr<Rendezvous>> Connect(const std::string& host, std::uint16_t port);
  explicit Rendezvous(UniqueFd fd);

  Status Send(const std::string& line);
  /// Error kUnavailable when the other end is gone or silent, kProtocol when the line is too long.
  Result<std::string> Receive();

 private:
  UniqueFd fd_;
  std::string read_;
};

/// A port where others come to a rendezvous.
class MeetingPoint {
 public:
  /// Port 0: any. Errors: kUnavailable with address and reason.
  static Result<std::unique_ptr<MeetingPoint>> Open(const std::string& address, std::uint16_t port);
  MeetingPoint(UniqueFd fd, std::uint16_t port) : fd_(std::move(fd)), port_(port) {}

  std::uint16_t port() const { return port_; }
  /// Waits for the next one.
  Result<std::unique_ptr<Rendezvous>> Accept();

 private:
  UniqueFd fd_;
  std::uint16_t port_;
};

std::string HandleToText(const transport::Handle& handle);
/// Error kProtocol.
Result<transport::Handle> HandleFromText(const std::string& text);

}  // namespace weir::tools
