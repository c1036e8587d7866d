#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/rdma/verbs.h"

namespace weir::transport::rdma {

/// Memory that is registered with a device, each range of whole pages once for all channels, for as long as somebody
/// holds it: nothing is kept beyond that, since memory that was given back to the system must not stay with the device.
/// A range that lies within one that is held is not registered again.
///
/// Owned by a port. Any thread; takes a lock. At most kMax ranges, found and given back in logarithmic time.
class Registrations {
 public:
  static constexpr std::size_t kMax = 65'536;

  /// What the peer, or only we, may do there.
  enum class Use : std::uint8_t { kSend, kReceive };

  /// One held range. A send reads, a receive is written to by the peer.
  struct Entry {
    ibv_mr* memory = nullptr;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Use use = Use::kSend;
    bool dma_buf = false;
    std::uint32_t holders = 0;
    std::list<Entry>::iterator self;
    Entry* outer = nullptr;  ///< A range of the same use that this one lies within,
    std::set<Entry*> inner;  ///< and those that lie within this one and have it as their outer.
  };

  Registrations(const Verbs* verbs, ibv_pd* domain, std::string port);
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// Size is not 0. Errors: kResourceExhausted at a limit, with the limit and what is registered; kInvalidArgument when
  /// there is no such memory.
  Result<Entry*> Hold(const void* data, Bytes size, Use use);
  /// Memory of another device, of which `fd` is a handle, at `offset` there; `data` is where it is here. Error
  /// kUnsupported when device, kernel or library cannot.
  Result<Entry*> HoldDmaBuf(int fd, Bytes offset, const void* data, Bytes size, Use use);
  void Release(Entry* entry);

  bool takes_dma_buf() const { return takes_dma_buf_; }
  std::size_t ranges() const;
  Bytes bytes() const;

 private:
  using Outermost = std::map<std::uint64_t, Entry*>;

  Entry* Add(const Entry& entry);
  Outermost& OutermostOf(Use use) { return outermost_[static_cast<std::size_t>(use)]; }
  Entry* Covering(Use use, std::uint64_t begin, std::uint64_t end);
  void Index(Entry* entry);
  void Unindex(Entry* entry);
  Status Refused(Bytes size, int error) const;

  const Verbs* verbs_;
  ibv_pd* domain_;
  std::string port_;
  bool takes_dma_buf_;

  mutable std::mutex mutex_;  ///< Guards what follows.
  std::list<Entry> entries_;
  /// Of each use, by where they begin: memory of the host that lies within no other range. So whoever begins later ends
  /// later as well, and what covers an address is the last that begins before it.
  std::array<Outermost, 2> outermost_;
  Bytes bytes_ = 0;
};

}  // namespace weir::transport::rdma
