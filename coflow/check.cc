#include "coflow/check.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

void CheckFailed(const char* file, int line, const char* condition) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weir
