#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "agents/nccl/abi/profiler.h"
#include "coflow/status.h"

namespace weir::nccl {

/// A communicator, as a profiler's init is told of it.
struct ProfiledFacts {
  std::uint64_t comm_id = 0;
  const char* name = nullptr;
  int nodes = 0;
  int ranks = 0;
  int rank = 0;
  abi::Logger logger = nullptr;
};

/// Somebody else's profiler, of one version: what it is told is made from what NCCL tells us, which may be of a later
/// version. Its errors stay here. Any thread, as NCCL's.
class OtherProfiler {
 public:
  /// The highest of v3 to v6 that `library` has and that can be made from events of `given`, NCCL's version. Error
  /// kNotFound with those that there are.
  static Result<std::unique_ptr<OtherProfiler>> In(void* library, int given);
  virtual ~OtherProfiler() = default;
  virtual int version() const = 0;
  virtual std::string name() const = 0;
  virtual abi::Result Init(void** context, int* mask, const ProfiledFacts& facts) = 0;
  /// `parent` and `group` are its own handles, in place of those in the event; of `comm_id` only v3 is told.
  virtual abi::Result Start(void* context, void** event, const abi::DescriptorV3& what, void* parent, void* group,
                            std::uint64_t comm_id) = 0;
  virtual abi::Result Start(void* context, void** event, const abi::DescriptorV4& what, void* parent, void* group,
                            std::uint64_t comm_id) = 0;
  virtual abi::Result Start(void* context, void** event, const abi::DescriptorV5& what, void* parent, void* group,
                            std::uint64_t comm_id) = 0;
  virtual void Stop(void* event) = 0;
  /// Does nothing with states that its version does not know.
  virtual void Record(void* event, std::uint32_t state, const void* arguments) = 0;
  virtual void Finalize(void* context) = 0;
};

/// An event that both halves have a name for.
struct ChainedEvent {
  void* own = nullptr;
  void* theirs = nullptr;
  void* context = nullptr;  ///< Theirs.
};

/// Names for events that two profilers have each a name for, as numbers like those of EventBook, whose kinds it does
/// not use. Operations, steps and the like have a record until they stop; what has children after it stopped keeps one
/// until kLasting later ones came. Any thread, no lock.
class ChainBook {
 public:
  static constexpr std::size_t kLasting = 1 << 14;
  static constexpr std::size_t kOpen = 1 << 14;

  ChainBook();
  /// Null: no record is free.
  void* Keep(bool lasting, const ChainedEvent& event);
  /// False: it is no name of ours, or of one that is long gone.
  bool Find(const void* handle, ChainedEvent* out) const;
  /// After the event's end.
  void Release(const void* handle);
  /// It came from here, whether its record is still there or not.
  static bool IsChained(const void* handle);

 private:
  struct Record {
    std::atomic<std::uint64_t> generation{0};  ///< 0: free.
    std::atomic<void*> own{nullptr};
    std::atomic<void*> theirs{nullptr};
    std::atomic<void*> context{nullptr};
  };
  static void Write(Record* record, const ChainedEvent& event, std::uint64_t generation);
  const Record* RecordOf(const void* handle) const;

  std::atomic<std::uint64_t> next_{1};
  std::unique_ptr<std::array<Record, kLasting>> lasting_;
  std::unique_ptr<std::array<Record, kOpen>> open_;
};

/// Passes what NCCL tells us on to the profiler that WEIR_NCCL_PROFILER names, if it does: only what that one asked
/// for, and what is above it, as NCCL would. Never the network half's own events, which mean nothing to others. One a
/// process, never destroyed.
class ProfilerChain {
 public:
  static ProfilerChain& Instance();

  /// For a new communicator of ours, `comm`: the other one is loaded if it was not, and told. What goes wrong is said
  /// in NCCL's log, and then nothing is passed on. `own`: a table of ours, not to be chained to itself. `mask`: NCCL's,
  /// with what we want in it; what the other one wants is added, now and whenever it changes.
  void Begin(const void* comm, int given, const void* own, int* mask, const ProfiledFacts& facts);
  void End(const void* comm);
  bool active() const { return other_.load(std::memory_order_acquire) != nullptr; }

  /// What NCCL is to be told that an event is called, which is `own` to us.
  template <typename Descriptor>
  void* Start(const void* comm, const Descriptor& what, void* own);
  /// The name that an event has for us; the handle itself, where it is not chained.
  void* Own(void* handle) const;
  void Stop(void* handle);
  void Record(void* handle, std::uint32_t state, const void* arguments);

 private:
  struct Comm {
    void* context = nullptr;
    std::uint64_t comm_id = 0;
  };
  ProfilerChain() = default;
  void Load(int given, const void* own);
  bool Wants(std::uint64_t type);
  bool FindComm(const void* comm, Comm* out);

  std::atomic<OtherProfiler*> other_{nullptr};  ///< Never deleted.
  ChainBook book_;
  int their_mask_ = 0;  ///< The other one may keep the address, and change it at any time.
  std::atomic<int*> nccl_mask_{nullptr};
  std::mutex mutex_;  ///< Guards what follows.
  bool loaded_ = false;
  std::unordered_map<const void*, Comm> comms_;
};

/// The names that are tried for "WEIR_NCCL_PROFILER=value", as NCCL has it for NCCL_PROFILER_PLUGIN.
std::array<std::string, 2> OtherProfilerNames(const std::string& value);

/// `mask` with the bits of all that is above what it has: NCCL makes those too.
std::uint64_t WithParents(std::uint64_t mask);

}  // namespace weir::nccl
