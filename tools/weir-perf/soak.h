#pragma once

#include <cstdint>
#include <functional>

#include "coflow/status.h"
#include "tools/weir-perf/ends.h"

namespace weir::tools {

/// What went through and was compared, byte by byte.
struct SoakResult {
  std::uint64_t messages = 0;  ///< Sent and received.
  Bytes bytes = 0;             ///< Received.
};

/// Directives that change a hundred times a second, in a way that a seed decides: levels, caps from 200 Mbit/s on,
/// phase gates, or nothing of all that.
class ChangingDirectives final : public transport::DirectiveSource {
 public:
  explicit ChangingDirectives(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t Version() const noexcept override;
  transport::LaneDirective Read() const noexcept override;

 private:
  std::uint64_t seed_;
};

/// Sends and receives at once, as both ends do: messages of random sizes with random bytes, both from the seed, until
/// `plan.size` bytes went each way; the asker's first message is half of that, in eight parts. `seen` is what was
/// compared, also when it ends early; `look`, if given, is called with it after each step, and ends the soak with its
/// error. Errors: kInternal with the message and the place at which a byte differs; why a channel failed.
Status Soak(const Plan& plan, bool asker, Channels* channels, SoakResult* seen,
            const std::function<Status(const SoakResult&)>& look = nullptr);

}  // namespace weir::tools
