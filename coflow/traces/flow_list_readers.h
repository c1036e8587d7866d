#pragma once

#include <memory>

#include "coflow/traces/reader.h"

namespace weir::traces {

inline constexpr Bytes kMegabyte = 1'048'576;  ///< What the field's traces call 1 MB.

Result<std::unique_ptr<Reader>> OpenFacebook(std::unique_ptr<std::istream> in, std::string origin);
Result<std::unique_ptr<Reader>> OpenSincronia(std::unique_ptr<std::istream> in, std::string origin);

}  // namespace weir::traces
