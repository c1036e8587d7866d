// What a process says of itself at the agent's door: taken as a job whose values are within their limits, or refused.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "agents/host/attach_shell.h"
#include "coflow/check.h"
#include "coflow/job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::client::AttachRequest request{};
  std::memcpy(&request, data, std::min(size, sizeof(request)));
  const auto job = weir::agents::ReadAttachRequest(request);
  if (!job) {
    WEIR_CHECK(!job.error().message().empty());
    return 0;
  }
  WEIR_CHECK(!job->name.empty() && job->name.size() < sizeof(request.job));
  WEIR_CHECK(job->tenant.size() < sizeof(request.tenant));
  WEIR_CHECK(weir::ParseJobClass(job->job_class).has_value());
  WEIR_CHECK(std::isfinite(job->weight) && job->weight >= 0);
  return 0;
}
