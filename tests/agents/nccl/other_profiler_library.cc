// A profiler of somebody else's, for WEIR_NCCL_PROFILER: checks what it is told, and writes to the file that
// OTHER_PROFILER_REPORT names what it saw of each type of event. OTHER_PROFILER_MASK is what it asks for,
// OTHER_PROFILER_FAILS=init or events makes it fail. Compiled once for each version, OTHER_VERSION.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "agents/nccl/abi/profiler.h"

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

namespace {

namespace abi = weir::nccl::abi;
using Table = abi::JOINED(ProfilerV, OTHER_VERSION);

struct Event {
  std::uint64_t type;
};

std::mutex mutex;
std::set<const void*> alive;  // Events and the context.
int begun[16];
int ended[16];
int orphans[16];
int wrong = 0;  // Names that it did not give, counts that cannot be.
int recorded = 0;
int communicators = 0;

bool Fails(const char* what) {
  const char* text = std::getenv("OTHER_PROFILER_FAILS");
  return text != nullptr && std::strcmp(text, what) == 0;
}

int BitOf(std::uint64_t type) {
  int bit = 0;
  while (type >> bit > 1) ++bit;
  return bit;
}

abi::Result Begin(void** context, int* mask) {
  if (Fails("init")) return abi::Result::kInternal;
  const std::lock_guard lock(mutex);
  *context = new int(0);
  alive.insert(*context);
  ++communicators;
  const char* wanted = std::getenv("OTHER_PROFILER_MASK");
  *mask = wanted == nullptr ? 0 : std::atoi(wanted);
  return abi::Result::kSuccess;
}

[[maybe_unused]] abi::Result InitV3(void** context, int* mask) {
  return Begin(context, mask);
}
[[maybe_unused]] abi::Result InitV4(void** context, int* mask, const char* name, std::uint64_t comm_id, int, int ranks,
                                    int rank, abi::Logger) {
  if (comm_id == 0 || name == nullptr || rank >= ranks) ++wrong;
  return Begin(context, mask);
}
[[maybe_unused]] abi::Result InitV5(void** context, std::uint64_t comm_id, int* mask, const char* name, int nodes,
                                    int ranks, int rank, abi::Logger logger) {
  return InitV4(context, mask, name, comm_id, nodes, ranks, rank, logger);
}
[[maybe_unused]] constexpr auto InitV6 = InitV5;

/// Counts what cannot be in a collective's event.
template <typename Collective>
int WrongIn(const Collective& what) {
  int found = std::strcmp(what.datatype, "ncclUint32") != 0 || what.count > 1 << 20 ? 1 : 0;
  if constexpr (requires { what.comm_id; }) found += what.comm_id == 0 ? 1 : 0;
  if constexpr (requires { what.parent_group; }) found += alive.count(what.parent_group) == 0 ? 1 : 0;
  return found;
}

abi::Result Start(void* context, void** event, Table::Event* what) {
  if (Fails("events")) return abi::Result::kSystem;
  const std::lock_guard lock(mutex);
  const int bit = BitOf(what->type);
  ++begun[bit];
  if (alive.count(context) == 0) ++wrong;
  if (what->parent == nullptr) ++orphans[bit];
  if (what->parent != nullptr && alive.count(what->parent) == 0) ++wrong;
  if (what->type == abi::kEventCollective) wrong += WrongIn(what->collective);
  if (what->type == abi::kEventProxyOp && (what->proxy_op.peer > 8 || what->proxy_op.steps < 1)) ++wrong;
  *event = new Event{what->type};
  alive.insert(*event);
  return abi::Result::kSuccess;
}

abi::Result Stop(void* event) {
  if (Fails("events")) return abi::Result::kSystem;
  const std::lock_guard lock(mutex);
  if (alive.count(event) == 0) {
    ++wrong;
  } else {
    ++ended[BitOf(static_cast<Event*>(event)->type)];  // Kept: it may have children still.
  }
  return abi::Result::kSuccess;
}

abi::Result Record(void* event, std::uint32_t, void*) {
  const std::lock_guard lock(mutex);
  if (alive.count(event) == 0) ++wrong;
  ++recorded;
  return abi::Result::kSuccess;
}

abi::Result End(void* context) {
  const std::lock_guard lock(mutex);
  if (alive.erase(context) == 0) ++wrong;
  const char* path = std::getenv("OTHER_PROFILER_REPORT");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return abi::Result::kSuccess;
  std::fprintf(file, "{\"version\": %d, \"wrong\": %d, \"recorded\": %d, \"communicators\": %d", OTHER_VERSION, wrong,
               recorded, communicators);
  for (int bit = 0; bit < 16; ++bit) {
    if (begun[bit] == 0) continue;
    std::fprintf(file, ", \"%d\": [%d, %d, %d]", 1 << bit, begun[bit], ended[bit], orphans[bit]);
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
  return abi::Result::kSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Table JOINED(ncclProfiler_v, OTHER_VERSION);
Table JOINED(ncclProfiler_v, OTHER_VERSION) = {"Other", JOINED(InitV, OTHER_VERSION), Start, Stop, Record, End};
