#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agents/nccl/abi/net.h"
#include "coflow/status.h"

namespace weir::tools::emulate {

namespace abi = nccl::abi;

/// A network plugin of NCCL's, loaded from a file, of any version from v6 to v12: one set of calls whatever the
/// version. Stands where NCCL's core stands, adaptors for older versions included. Never unloads the library, as its
/// threads may still run. Calls are the plugin's own; their threads are the caller's, by NCCL's rules.
class Net {
 public:
  /// `version` 0: the highest that the library exports, as NCCL chooses. Errors: kNotFound with what the loader says,
  /// or with the versions that there are; kInvalidArgument for a version that nobody knows.
  static Result<std::unique_ptr<Net>> Open(const std::string& path, int version);
  virtual ~Net() = default;

  struct Properties {
    std::string name;
    int speed_mbit = 0;
    int receives_max = 1;
    int pointer_kinds = 0;
  };

  virtual int version() const = 0;
  virtual std::string name() const = 0;
  virtual void* library() const = 0;  ///< As dlopen gave it.
  virtual abi::Result Init(void** context, std::uint64_t comm_id, abi::Logger logger,
                           abi::ProfilerCallback callback) = 0;
  virtual abi::Result Devices(int* count) = 0;
  virtual abi::Result GetProperties(int device, Properties* out) = 0;
  virtual abi::Result Listen(void* context, int device, void* handle, void** comm) = 0;
  virtual abi::Result Connect(void* context, int device, void* handle, void** comm) = 0;
  virtual abi::Result Accept(void* listen_comm, void** comm) = 0;
  virtual abi::Result Register(void* comm, void* data, std::size_t size, void** memory) = 0;
  virtual abi::Result Deregister(void* comm, void* memory) = 0;
  virtual abi::Result Isend(void* comm, void* data, std::size_t size, int tag, void* memory, void* phandle,
                            void** request) = 0;
  /// At most kReceivesMax buffers.
  virtual abi::Result Irecv(void* comm, int count, void** data, const std::size_t* sizes, int* tags, void** memories,
                            void** phandles, void** request) = 0;
  /// Of what a receive brought; a null request: there is nothing to wait for.
  virtual abi::Result Iflush(void* comm, int count, void** data, int* sizes, void** memories, void** request) = 0;
  virtual abi::Result Test(void* request, int* done, int* sizes) = 0;
  virtual abi::Result CloseSend(void* comm) = 0;
  virtual abi::Result CloseReceive(void* comm) = 0;
  virtual abi::Result CloseListen(void* comm) = 0;
  /// Success where the version has none.
  virtual abi::Result Finalize(void* context) = 0;
  virtual abi::Result SetAttributes(void* context, abi::NetAttributes* attributes) = 0;

  static constexpr std::size_t kReceivesMax = 8;
};

}  // namespace weir::tools::emulate
