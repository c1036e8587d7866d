#pragma once

#include <string_view>

#include "agents/nccl/abi/net.h"

/// Words to the people who run NCCL: through NCCL's own log, so NCCL_DEBUG and NCCL_DEBUG_FILE apply. Any thread; never
/// on the path of a transfer that goes well. Before NCCL has told us its logger, nothing is said.
namespace weir::nccl {

void SetLogger(abi::Logger logger);
/// Shown from NCCL_DEBUG=WARN on.
void Warn(std::string_view text);
/// Shown from NCCL_DEBUG=INFO on.
void Inform(std::string_view text);

}  // namespace weir::nccl
