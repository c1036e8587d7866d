#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace weir {

/// Why something could not be done. The list is short on purpose: a caller chooses between these, people read the
/// message.
enum class StatusCode {
  kOk,
  kInvalidArgument,    ///< What was given is wrong; giving it again fails again.
  kNotFound,           ///< It does not exist.
  kAlreadyExists,      ///< It exists, or the place is taken.
  kPermissionDenied,   ///< The operating system refused.
  kResourceExhausted,  ///< A named limit was reached.
  kUnavailable,        ///< The peer cannot be reached now; try again later.
  kProtocol,           ///< The peer sent what the protocol does not allow.
  kUnsupported,        ///< This host, kernel or version cannot do it.
  kInternal,           ///< A fault of ours.
};

std::string_view StatusCodeName(StatusCode code);

/// The outcome of an operation across modules: a code, and for people a message with what happened, to what, and what
/// to do. Cheap when ok (no allocation). Copyable, any thread.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return Status(); }
  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  /// True if the same call may succeed later without anything being changed by the caller.
  bool Retryable() const { return code_ == StatusCode::kUnavailable || code_ == StatusCode::kResourceExhausted; }
  /// "code: message", or "ok".
  std::string ToString() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

/// A value, or the Status that says why there is none.
template <typename T>
using Result = tl::expected<T, Status>;

/// Shorthand for `return Error(StatusCode::kNotFound, "...")` from a function that returns Result<T>.
inline tl::unexpected<Status> Error(StatusCode code, std::string message) {
  return tl::unexpected<Status>(Status(code, std::move(message)));
}

}  // namespace weir
