#pragma once

#include <cstdint>

namespace weir {

/// Calls of operator new in this program so far. Linking allocation_counter.cc makes it count. Any thread.
std::uint64_t Allocations();

}  // namespace weir
