#pragma once

#include <string>
#include <string_view>

namespace weir::tools {

/// Text that may stand in HTML, in an attribute too. Control characters become spaces.
std::string HtmlText(std::string_view text);

}  // namespace weir::tools
