#include "agents/nccl/coflow_size.h"

#include <cstring>
#include <initializer_list>

namespace weir::nccl {

Bytes BytesOfDatatype(const char* datatype) {
  struct Width {
    const char* ending;
    Bytes bytes;
  };
  if (datatype == nullptr) return 1;
  // "float8" is followed by its kind, so it is not looked for at the end.
  if (std::strstr(datatype, "loat8") != nullptr) return 1;
  const std::size_t length = std::strlen(datatype);
  for (const Width width : {Width{"64", 8}, Width{"32", 4}, Width{"16", 2}}) {
    if (length >= 2 && std::strcmp(datatype + length - 2, width.ending) == 0) return width.bytes;
  }
  return 1;
}

Bytes BytesToPeer(Function function, const char* algorithm, Bytes given, int ranks) {
  const Bytes all = ranks > 1 ? static_cast<Bytes>(ranks) : 2;
  switch (function) {
    case Function::kAllReduce:
      // Once around the ring to add, once more to hand out, and each rank keeps a part.
      if (algorithm != nullptr && std::strcmp(algorithm, "RING") == 0) return 2 * given / all * (all - 1);
      return given;
    case Function::kAllGather:
    case Function::kReduceScatter:
      return given * (all - 1);
    case Function::kBroadcast:
    case Function::kReduce:
    case Function::kSendReceive:
    case Function::kNone:
      break;
  }
  return given;
}

}  // namespace weir::nccl
