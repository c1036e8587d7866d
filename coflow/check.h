#pragma once

namespace weir {

/// Prints where and what, then aborts. Never returns. Any thread.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition) noexcept;

}  // namespace weir

/// A condition that only a programming error can break. Stays on in release builds; control code only, never per
/// packet.
#define WEIR_CHECK(condition) ((condition) ? static_cast<void>(0) : ::weir::CheckFailed(__FILE__, __LINE__, #condition))
