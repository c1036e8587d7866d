#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "coflow/unique_fd.h"
#include "coflow/units.h"
#include "tools/weir-perf/rendezvous.h"
#include "tools/weir-perf/sheet.h"
#include "tools/weir-perf/test_link.h"
#include "transport/transport.h"

namespace weir::tools {

/// What happens to a peer, or to the link to it, while random messages go both ways.
enum class Fault : std::uint8_t {
  kKill,    ///< SIGKILL: it must be noticed.
  kFreeze,  ///< SIGSTOP for a while: nothing may be lost.
  kCut,     ///< The link drops everything, for good, and says nothing: it must be noticed.
  kFlap,    ///< The same for a while: nothing may be lost.
  kLoss,    ///< The link loses frames all the time: nothing may be lost.
};

std::string_view FaultName(Fault fault);
/// "all", or names separated by commas. Error kInvalidArgument with what is allowed.
Result<std::vector<Fault>> FaultsFromNames(std::string_view names);
/// Whether it needs a link that can be told to lose.
bool NeedsLink(Fault fault);

/// The other end of a soak: `weir-perf serve` in a process of its own, at the other end of the link or on this host's
/// loopback. Ends with the object, and with its parent.
class FaultPeer {
 public:
  /// `link` may be null. Waits until it serves. Error kUnavailable with what it said.
  static Result<std::unique_ptr<FaultPeer>> Start(const std::vector<std::string>& flags, const TestLink* link);
  ~FaultPeer();
  FaultPeer(const FaultPeer&) = delete;
  FaultPeer& operator=(const FaultPeer&) = delete;

  const char* host() const { return host_; }
  std::uint16_t port() const { return port_; }
  void Signal(int signal) const noexcept;

 private:
  explicit FaultPeer(const TestLink* link) : host_(link != nullptr ? TestLink::kTheirs : "127.0.0.1") {}
  Status Await();

  const char* host_;
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
  UniqueFd sayings_;  ///< Stays open: a peer that has nobody to talk to would end.
};

struct FaultOptions {
  Nanoseconds lasts = 500 * kMillisecond;  ///< Of freeze and flap.
  Nanoseconds bound = 10 * kSecond;        ///< Within which silence must be noticed,
  Nanoseconds exit_bound = kSecond / 10;   ///< and the end of a peer's process.
  double loss = 0.01;                      ///< Of frames, each way.
  Bytes bytes = 100'000'000;               ///< Each way. The fault comes when a fifth of them is there.
  std::uint32_t seed = 1;
};

/// How one scenario went.
struct FaultResult {
  enum class End : std::uint8_t { kWentOn, kPeerDead, kWrongBytes, kHung, kSkipped };
  Fault fault = Fault::kKill;
  std::string done;  ///< What was done to the peer or the link, for people.
  End end = End::kSkipped;
  Nanoseconds after = -1;  ///< From the fault's beginning until its end was told (kPeerDead), or until more came
                           ///< through than what was under way, after the fault was over (kWentOn). -1: neither.
  Nanoseconds bound = -1;  ///< What `after` is held against: kPeerDead must come within. -1: nothing.
  Bytes bytes = 0;         ///< Received and compared.
  std::string message;     ///< Why: of the failure, or of the skip.
};

/// "yes"; "late": noticed as it must be, but after the bound; "no"; "skipped".
std::string_view Verdict(const FaultResult& result);
Sheet FaultsSheet(const std::vector<FaultResult>& results);

/// Makes the link lose frames with this probability from now on, 0 .. 1; 1 is a cut. Error: it does not.
using Lose = std::function<Status(double)>;

/// Runs a soak with `peer` and does to it what `fault` says. `lose` is empty only where the fault does without, and the
/// link is in order afterwards. Errors: there could be no soak, or the link does not do as it is told.
Result<FaultResult> MeasureFault(Fault fault, const FaultOptions& options, const FaultPeer& peer, const Lose& lose,
                                 Rendezvous* rendezvous, transport::Transport* transport);

}  // namespace weir::tools
