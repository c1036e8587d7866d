#include <iostream>

#include "tools/weir-sim/commands.h"
#include "tools/weir-sim/report.h"

namespace weir::tools {

int PoliciesCommand(const Options& options) {
  const auto form = OutputFormFromName(options.output);
  if (!form) {
    return Fail(form.error());
  }
  PrintPolicies(*form, &std::cout);
  return 0;
}

}  // namespace weir::tools
