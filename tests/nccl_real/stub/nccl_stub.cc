// Stands for libnccl.so.2 of two ranks where there is no GPU: says what NCCL's log says, loads the plugin by its name,
// and knows what the other rank of all_reduce.cc brings in. STUB_OF_NCCL: "hang" never comes back, "fail" lets rank 1
// fail and rank 0 wait, "wrong" adds up wrong.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "nccl.h"

namespace {

constexpr int kLinesOfLog = 4000;  // More than a pipe holds.
int own_rank = 0;

bool Is(const char* mode) {
  const char* value = std::getenv("STUB_OF_NCCL");
  return value != nullptr && std::string(value) == mode;
}

template <typename T>
void Add(const void* from, void* to, size_t count) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (size_t i = 0; i < count; ++i) {
    const auto other = static_cast<T>((i * 7 + static_cast<size_t>(1 - own_rank) * 3) % 16);
    out[i] = static_cast<T>(in[i] + other + (Is("wrong") ? 1 : 0));
  }
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t) {
  return "an error of the stub";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int rank) {
  own_rank = rank;
  if (Is("fail") && rank == 1) return ncclInternalError;
  if (Is("hang") || Is("fail")) pause();
  const std::string name = std::string("libnccl-net-") + std::getenv("NCCL_NET_PLUGIN") + ".so";
  const bool found = dlopen(name.c_str(), RTLD_NOW) != nullptr;
  for (int i = 0; i < kLinesOfLog; ++i) std::printf("host:1:1 [0] NCCL INFO line %d of a long log\n", i);
  std::printf("NCCL version 2.99.2+cuda13.0\nhost:1:1 [0] NCCL INFO Using network %s\n", found ? "Weir" : "Socket");
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t,
                           void*) {
  switch (type) {
    case ncclInt8:
      Add<std::int8_t>(from, to, count);
      break;
    case ncclInt32:
      Add<std::int32_t>(from, to, count);
      break;
    case ncclUint64:
      Add<std::uint64_t>(from, to, count);
      break;
    case ncclFloat32:
      Add<float>(from, to, count);
      break;
    case ncclFloat64:
      Add<double>(from, to, count);
      break;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t) {
  return ncclSuccess;
}
