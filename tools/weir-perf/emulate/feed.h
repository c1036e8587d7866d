#pragma once

#include <cstdint>
#include <memory>

#include "agents/nccl/abi/profiler.h"
#include "coflow/status.h"

namespace weir::tools::emulate {

namespace abi = nccl::abi;

/// What NCCL's core tells a profiler plugin, and the callback by which a network plugin makes events of its own. The
/// profiler is looked for where the network plugin is. Events are what the plugin calls them, opaque; null where it
/// wants none. Collectives are told by the application's thread, operations and steps by the progress thread.
class Feed {
 public:
  /// `version` 0: the highest that there is. Error kNotFound.
  static Result<std::unique_ptr<Feed>> Open(void* library, int version);
  virtual ~Feed();

  struct Collective {
    const char* function = nullptr;
    const char* algorithm = nullptr;
    std::uint64_t sequence = 0;
    std::size_t count = 0;
    int channels = 0;
  };
  virtual int version() const = 0;
  virtual abi::Result Init(std::uint64_t comm_id, int ranks, int rank) = 0;
  virtual abi::Result Finalize() = 0;
  virtual void* StartGroup() = 0;
  virtual void* StartCollective(const Collective& what, void* group) = 0;
  virtual void* StartP2p(const char* function, std::size_t count, int peer, void* group) = 0;
  virtual void* StartOp(void* parent, int channel, int peer, std::uint64_t steps, std::size_t chunk, bool is_send) = 0;
  virtual void* StartStep(void* op, std::uint64_t step) = 0;
  virtual void Record(void* event, std::uint32_t state) = 0;
  virtual void Stop(void* event) = 0;

  /// What a phandle points to.
  struct Transfer {
    void* step = nullptr;
    void* operation = nullptr;
  };
  /// For Net::Init. Serves the one feed of this process.
  static abi::Result Callback(void** event, abi::EventCall what, void* phandle, std::int64_t id, void* extra);

 protected:
  Feed();
  virtual abi::Result StartNetEvent(void** event, const Transfer& transfer, std::int64_t id, void* extra) = 0;
};

}  // namespace weir::tools::emulate
