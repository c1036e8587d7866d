#include "coflow/directive.h"

#include <fmt/format.h>

namespace weir {

Status CheckDirective(const Directive& directive) {
  const auto bad = [&directive](std::string_view what) {
    return Status(StatusCode::kInvalidArgument, fmt::format("directive for lane {}: {}", directive.lane.value, what));
  };
  if (!directive.lane) return bad("no lane is named; lanes count from 1");
  // Written so that a NaN is refused too.
  if (!(directive.rate >= 0 && directive.rate <= kDirectiveRateMax)) {
    return bad(fmt::format("rate = {} bytes/s; allowed: 0 (no cap) to {}", directive.rate, kDirectiveRateMax));
  }
  if (directive.level >= kQueueLevels) {
    return bad(fmt::format("level = {}; allowed: 0 to {}", directive.level, kQueueLevels - 1));
  }
  if (directive.ttl <= 0) return bad(fmt::format("ttl = {} ns; must be above 0", directive.ttl));
  return Status::Ok();
}

}  // namespace weir
