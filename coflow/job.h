#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "coflow/ids.h"
#include "coflow/status.h"

namespace weir {

/// Strict: a job of a stronger class goes before every job of a weaker one. Smaller is stronger.
enum class JobClass : std::uint8_t { kGuaranteed = 0, kBestEffort = 1, kScavenger = 2 };

/// "guaranteed", "best-effort" or "scavenger".
std::string_view JobClassName(JobClass job_class);

/// The inverse; "" is kBestEffort, so that whoever says nothing gets the default. Error kInvalidArgument names what was
/// found and what is allowed.
Result<JobClass> ParseJobClass(std::string_view name);

/// One training run. Processes that state the same tenant and name, on any host, are one job. A plain value.
struct Job {
  JobId id;
  std::string name;    ///< Unique within its tenant.
  std::string tenant;  ///< May be empty.
  JobClass job_class = JobClass::kBestEffort;
  double weight = 1;       ///< > 0: share against jobs of the same class.
  std::uint32_t gpus = 0;  ///< Over all hosts; 0: not said.

  friend bool operator==(const Job&, const Job&) = default;
};

}  // namespace weir
