#include <iostream>

#include "tools/weir-sim/commands.h"

namespace weir::tools {

int Fail(const Status& status) {
  std::cerr << "weir-sim: " << status.message() << '\n';
  switch (status.code()) {
    case StatusCode::kNotFound:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnavailable:
      return kFailed;
    case StatusCode::kProtocol:
      return kBadTrace;
    case StatusCode::kUnsupported:
      return kUnsupported;
    default:
      return kWrongUsage;
  }
}

}  // namespace weir::tools
