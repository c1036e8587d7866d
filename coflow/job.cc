#include "coflow/job.h"

#include <string>

namespace weir {

std::string_view JobClassName(JobClass job_class) {
  switch (job_class) {
    case JobClass::kGuaranteed:
      return "guaranteed";
    case JobClass::kBestEffort:
      return "best-effort";
    case JobClass::kScavenger:
      return "scavenger";
  }
  return "unknown";
}

Result<JobClass> ParseJobClass(std::string_view name) {
  if (name.empty()) return JobClass::kBestEffort;
  for (const JobClass each : {JobClass::kGuaranteed, JobClass::kBestEffort, JobClass::kScavenger}) {
    if (name == JobClassName(each)) return each;
  }
  return Error(StatusCode::kInvalidArgument,
               "job class \"" + std::string(name) + "\" is not known; allowed: guaranteed, best-effort, scavenger");
}

}  // namespace weir
