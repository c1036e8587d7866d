#pragma once

#include <string>

#include "agents/client/segment.h"
#include "agents/nccl/marks.h"
#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/tcp/options.h"

namespace weir::nccl {

/// What the environment says to the plugin; docs/nccl.md has the list. Read once, when NCCL first loads it.
struct PluginConfig {
  transport::TcpOptions tcp;
  std::uint32_t receives = 1;                    ///< Receives that NCCL may group into one (WEIR_NCCL_RECEIVES).
  Nanoseconds hold_max = 10 * kSecond;           ///< The longest that a hold is obeyed (WEIR_NCCL_HOLD_MAX_MS).
  ClassFrom class_from = ClassFrom::kDirective;  ///< WEIR_NCCL_CLASS_FROM.
  bool managed = false;                          ///< A job is named: there may be an agent,
  client::AttachRequest request{};               ///< which is told this,
  std::string agent_socket;                      ///< at this path (WEIR_AGENT_SOCKET).
  bool manages_loopback = false;                 ///< Connections within the host too (WEIR_MANAGE_LOOPBACK).
  const char* report = nullptr;  ///< WEIR_NCCL_REPORT: what each coflow sent is written there; null: nowhere.
  bool disabled = false;         ///< WEIR_DISABLE: NCCL goes on to its own network.
};

/// Errors: kInvalidArgument, naming the variable, what was found and what is allowed.
Result<PluginConfig> ConfigFromEnvironment();

}  // namespace weir::nccl
