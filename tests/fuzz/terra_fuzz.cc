// A trace of jobs between sites: read or refused with a message that names the input; see trace_fuzz.h.
#include "tests/fuzz/trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::traces::FuzzTrace(weir::traces::Format::kTerra, data, size);
}
