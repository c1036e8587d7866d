#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/rdma/verbs.h"

namespace weir::transport::rdma {

/// Memory that is registered with a device, each range of whole pages once for all channels, for as long as somebody
/// holds that very range: nothing is kept beyond that, since memory that was given back to the system must not stay
/// with the device. Who needs a part of a range gets a registration of its own. Would it share the larger one, it would
/// keep that when the other holder is gone and its memory too; and what the system gave out at the same addresses later
/// would be taken for registered, while the device still had the old pages.
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
  /// Begin, end, use.
  using Range = std::tuple<std::uint64_t, std::uint64_t, Use>;

  Entry* Add(const Entry& entry);
  Status Refused(Bytes size, int error) const;

  const Verbs* verbs_;
  ibv_pd* domain_;
  std::string port_;
  bool takes_dma_buf_;

  mutable std::mutex mutex_;  ///< Guards what follows.
  std::list<Entry> entries_;
  std::map<Range, Entry*> of_host_;  ///< Those that are not DMA-BUFs.
  Bytes bytes_ = 0;
};

}  // namespace weir::transport::rdma
