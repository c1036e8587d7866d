#pragma once

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/tcp/options.h"

namespace weir::nccl {

/// What the environment says to the plugin; docs/nccl.md has the list. Read once, when NCCL first loads it.
struct PluginConfig {
  transport::TcpOptions tcp;
  std::uint32_t receives = 1;    ///< Receives that NCCL may group into one (WEIR_NCCL_RECEIVES).
  const char* report = nullptr;  ///< WEIR_NCCL_REPORT: what each coflow sent is written there; null: nowhere.
  bool disabled = false;         ///< WEIR_DISABLE: NCCL goes on to its own network.
};

/// Errors: kInvalidArgument, naming the variable, what was found and what is allowed.
Result<PluginConfig> ConfigFromEnvironment();

}  // namespace weir::nccl
