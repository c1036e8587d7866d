#pragma once

#include <sys/types.h>

#include <cstddef>

/// Every write of the program passes here.
namespace weir::preload {

enum class Extent {
  kExact,  ///< A short result leaves the rest to be written.
  kUpTo,   ///< A short result may be all there was (sendfile, splice).
};

/// One write of the program, to be made now, later or not at all.
struct Write {
  int fd;
  std::size_t bytes;  ///< What the program wants to write.
  bool dont_wait;     ///< MSG_DONTWAIT.
  bool may_be_held;   ///< False for urgent data, and for calls whose refusal programs do not expect.
  Extent extent;
  /// Makes it, or its first `limit` bytes if it can be cut, with all its results, errno too.
  ssize_t (*make)(const void* arguments, std::size_t limit);
  const void* arguments;
};

/// Makes the write, or refuses or delays it as a full socket would while its lane is held. Fast where the descriptor is
/// not a data socket: a load or two.
ssize_t Pass(const Write& write) noexcept;

/// `fd` is about to be closed or replaced, or has just come into being.
void Forget(int fd) noexcept;
/// All from `first` to `last`.
void ForgetRange(unsigned first, unsigned last) noexcept;

}  // namespace weir::preload
