// One rank of a job that uses NCCL itself: all-reduces of all types over many sizes, every number compared. Built by
// the script `run` beside it, not by the project, which needs no CUDA.
//
//   all_reduce RANK RANKS ID_FILE BYTES_MAX     rank 0 writes the communicator's id to ID_FILE, the others wait for it
//
// Prints a line for each type and size; ends with 0 if all numbers were right, with 1 if not or if a call failed.
#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int kIdTries = 600;
constexpr useconds_t kIdPause_us = 100'000;

[[noreturn]] void Fail(const char* call, const char* why) {
  std::fprintf(stderr, "%s: %s\n", call, why);
  std::_Exit(1);
}

void Check(const char* call, cudaError_t error) {
  if (error != cudaSuccess) Fail(call, cudaGetErrorString(error));
}

void Check(const char* call, ncclResult_t result) {
  if (result != ncclSuccess) Fail(call, ncclGetErrorString(result));
}

/// Written under another name first, so that nobody reads half of it.
void WriteId(const std::string& path, const ncclUniqueId& id) {
  const std::string part = path + ".part";
  std::ofstream(part, std::ios::binary).write(id.internal, sizeof id.internal);
  if (std::rename(part.c_str(), path.c_str()) != 0) Fail("rename", path.c_str());
}

ncclUniqueId ReadId(const std::string& path) {
  ncclUniqueId id{};
  for (int i = 0; i < kIdTries; ++i) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    usleep(kIdPause_us);
  }
  Fail("the communicator's id", "rank 0 did not write it within 60 s");
}

struct Rank {
  int rank = 0;
  int ranks = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::size_t bytes_max = 0;
  void* input = nullptr;
  void* output = nullptr;
};

/// Small whole numbers, so that every type adds them up without rounding.
template <typename T>
T Value(std::size_t place, int rank) {
  return static_cast<T>((place * 7 + static_cast<std::size_t>(rank) * 3) % 16);
}

template <typename T>
bool AllReduce(const Rank& own, ncclDataType_t type, const char* name, std::size_t count) {
  std::vector<T> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = Value<T>(i, own.rank);
  Check("cudaMemcpy", cudaMemcpy(own.input, numbers.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  Check("ncclAllReduce", ncclAllReduce(own.input, own.output, count, type, ncclSum, own.comm, own.stream));
  Check("cudaStreamSynchronize", cudaStreamSynchronize(own.stream));
  Check("cudaMemcpy", cudaMemcpy(numbers.data(), own.output, count * sizeof(T), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (int rank = 0; rank < own.ranks; ++rank) sum = static_cast<T>(sum + Value<T>(i, rank));
    if (numbers[i] == sum) continue;
    std::fprintf(stderr, "rank %d, %s, %zu numbers: number %zu differs\n", own.rank, name, count, i);
    return false;
  }
  if (own.rank == 0) std::printf("right: all-reduce of %zu %s\n", count, name);
  return true;
}

template <typename T>
bool AllSizes(const Rank& own, ncclDataType_t type, const char* name) {
  bool right = true;
  for (std::size_t bytes = sizeof(T); bytes <= own.bytes_max; bytes *= 8) {
    right = AllReduce<T>(own, type, name, bytes / sizeof(T)) && right;
  }
  return AllReduce<T>(own, type, name, own.bytes_max / sizeof(T) - 1) && right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) Fail("usage", "all_reduce RANK RANKS ID_FILE BYTES_MAX");
  Rank own;
  own.rank = std::atoi(argv[1]);
  own.ranks = std::atoi(argv[2]);
  own.bytes_max = std::strtoull(argv[4], nullptr, 10);
  Check("cudaSetDevice", cudaSetDevice(0));
  ncclUniqueId id{};
  if (own.rank == 0) {
    Check("ncclGetUniqueId", ncclGetUniqueId(&id));
    WriteId(argv[3], id);
  } else {
    id = ReadId(argv[3]);
  }
  Check("ncclCommInitRank", ncclCommInitRank(&own.comm, own.ranks, id, own.rank));
  Check("cudaStreamCreate", cudaStreamCreate(&own.stream));
  Check("cudaMalloc", cudaMalloc(&own.input, own.bytes_max));
  Check("cudaMalloc", cudaMalloc(&own.output, own.bytes_max));
  bool right = AllSizes<float>(own, ncclFloat32, "float32");
  right = AllSizes<double>(own, ncclFloat64, "float64") && right;
  right = AllSizes<std::int8_t>(own, ncclInt8, "int8") && right;
  right = AllSizes<std::int32_t>(own, ncclInt32, "int32") && right;
  right = AllSizes<std::uint64_t>(own, ncclUint64, "uint64") && right;
  Check("ncclCommDestroy", ncclCommDestroy(own.comm));
  return right ? 0 : 1;
}
