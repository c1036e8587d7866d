#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir-perf/doctor.h"

/// What NCCL would make of the environment: which network plugin it would load, what it would find there, and what
/// stands in the way. Loads the plugins it examines, and begins the first that there is; it makes no connection.
namespace weir::tools::emulate {

/// What NCCL tries for one value of NCCL_NET_PLUGIN (empty: unset), in its order. `kind`: "net", "profiler". Pure.
std::vector<std::string> NamesTried(std::string_view kind, std::string_view value);

/// The highest version of an interface that both an NCCL and a library have; 0: none. `knows`: of the NCCL. Pure.
int HighestOfBoth(const std::vector<int>& knows, const std::vector<int>& has);

/// A diagnosis for the library, one for what each NCCL takes from it, one for this host, one for the agent.
std::vector<Diagnosis> DiagnoseNccl();

}  // namespace weir::tools::emulate
