#pragma once

#include <cstdint>

/// What packets are marked with, and who decides it: the agent's directive, the application (NCCL's configuration of
/// the communicator), or the environment. Any thread; errors of the kernel are passed over, as marks are a wish.
namespace weir::nccl {

/// Who goes first; where that one says nothing, the others in this order.
enum class ClassFrom : std::uint8_t { kDirective, kApplication, kEnvironment };

struct Marking {
  int traffic_class = -1;     ///< The traffic class byte from the beginning on; -1: the system's.
  bool directive_may = true;  ///< Whether a directive changes it.
};
/// `application` and `environment`: a traffic class byte; what is not from 0 to 255 says nothing.
Marking ChooseMarking(ClassFrom first, int application, int environment);

/// Whether a directive's marks say anything.
bool IsMark(std::uint32_t marks);
/// As client::LaneDirective has them.
void SetMarks(int fd, std::uint32_t marks);
void SetTrafficClass(int fd, int traffic_class);

}  // namespace weir::nccl
