#include "tools/weir-perf/faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "tools/weir-perf/ends.h"
#include "tools/weir-perf/soak.h"
#include "transport/clock.h"

namespace weir::tools {
namespace {

using transport::SteadyClock;

constexpr std::array<std::pair<std::string_view, Fault>, 5> kFaults{{{"kill", Fault::kKill},
                                                                     {"freeze", Fault::kFreeze},
                                                                     {"cut", Fault::kCut},
                                                                     {"flap", Fault::kFlap},
                                                                     {"loss", Fault::kLoss}}};
constexpr Bytes kBefore = 5;  ///< One part in so many comes before the fault.
/// Nothing more comes, and nobody says so: then it hangs.
constexpr Nanoseconds kPatience = 30 * kSecond;

bool Passes(Fault fault) {
  return fault == Fault::kFreeze || fault == Fault::kFlap;
}

bool MustBeNoticed(Fault fault) {
  return fault == Fault::kKill || fault == Fault::kCut;
}

/// Does to the peer or the link what a scenario says, as the soak goes on. Look() runs between the soak's steps.
class Doer {
 public:
  Doer(Fault fault, const FaultOptions& options, const FaultPeer& peer, const Lose& lose)
      : fault_(fault), options_(options), peer_(peer), lose_(lose) {
    if (fault == Fault::kLoss) Tell(options.loss);
  }
  ~Doer() {
    if (fault_ == Fault::kFreeze && begun_ && !over_) peer_.Signal(SIGCONT);
  }
  Doer(const Doer&) = delete;
  Doer& operator=(const Doer&) = delete;

  Status Look(const SoakResult& seen) {
    if (!link_.ok()) return link_;
    if (!begun_ && seen.bytes >= options_.bytes / kBefore) Begin();
    const Nanoseconds now = SteadyClock().Now();
    if (begun_ && Passes(fault_) && !over_ && now >= began_ + options_.lasts) {
      End();
      over_ = true;
      moved_ = SteadyClock().Now();
      bytes_ = seen.bytes;
    }
    if (seen.bytes != bytes_ || moved_ == 0) {
      if (over_ && resumed_ < 0) resumed_ = now - moved_;
      moved_ = now;
      bytes_ = seen.bytes;
    }
    const Nanoseconds patience = kPatience + options_.bound + (begun_ && !over_ ? options_.lasts : 0);
    if (now - moved_ < patience) return Status::Ok();
    hung_ = true;
    return Status(StatusCode::kUnavailable,
                  fmt::format("nothing came for {:.0f} s, and nobody said why", ToSeconds(patience)));
  }

  /// Puts the link in order if the scenario left it otherwise. The first error that the link gave.
  Status Mend() {
    if (lossy_) Tell(0);
    return link_;
  }

  bool begun() const { return begun_; }
  bool hung() const { return hung_; }
  Nanoseconds began() const { return began_; }
  /// From the fault's end until the next message was there; -1: there was none.
  Nanoseconds resumed() const { return resumed_; }

 private:
  /// The fault begins when whoever does it says that it is done: a link may take its time.
  void Begin() {
    begun_ = true;
    if (fault_ == Fault::kKill) peer_.Signal(SIGKILL);
    if (fault_ == Fault::kFreeze) peer_.Signal(SIGSTOP);
    if (fault_ == Fault::kCut || fault_ == Fault::kFlap) Tell(1);
    began_ = SteadyClock().Now();
  }

  void End() {
    if (fault_ == Fault::kFreeze) peer_.Signal(SIGCONT);
    if (fault_ == Fault::kFlap) Tell(0);
  }

  void Tell(double probability) {
    lossy_ = probability > 0;
    const Status told = lose_(probability);
    if (link_.ok()) link_ = told;
  }

  Fault fault_;
  const FaultOptions& options_;
  const FaultPeer& peer_;
  const Lose& lose_;
  Status link_;         ///< What the link said.
  bool lossy_ = false;  ///< What it was told last.
  bool begun_ = false;
  bool over_ = false;
  bool hung_ = false;
  Nanoseconds began_ = 0;
  Nanoseconds resumed_ = -1;
  Nanoseconds moved_ = 0;  ///< When the last message was there, or the fault was over,
  Bytes bytes_ = 0;        ///< and how much had come by then.
};

std::string Done(Fault fault, const FaultOptions& options) {
  const double lasts_ms = static_cast<double>(options.lasts) * 1e-6;
  switch (fault) {
    case Fault::kKill:
      return "peer killed";
    case Fault::kFreeze:
      return fmt::format("peer stopped for {:.0f} ms", lasts_ms);
    case Fault::kCut:
      return "link cut for good, in silence";
    case Fault::kFlap:
      return fmt::format("link cut for {:.0f} ms, in silence", lasts_ms);
    case Fault::kLoss:
      break;
  }
  return fmt::format("{:.3g} % of frames lost each way", options.loss * 100);
}

/// Between fork and exec: only what is safe there, as the link's thread may hold any lock.
[[noreturn]] void BecomePeer(int sayings, int other_namespace, char** words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (dup2(sayings, STDERR_FILENO) < 0) _exit(1);
  if (other_namespace >= 0 && setns(other_namespace, CLONE_NEWNET) != 0) _exit(1);
  execv("/proc/self/exe", words);
  _exit(1);
}

std::string Milliseconds(Nanoseconds span) {
  return span < 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(span) * 1e-6);
}

std::string_view EndName(FaultResult::End end) {
  switch (end) {
    case FaultResult::End::kWentOn:
      return "went on";
    case FaultResult::End::kPeerDead:
      return "peer declared dead";
    case FaultResult::End::kWrongBytes:
      return "wrong bytes";
    case FaultResult::End::kHung:
      return "hangs";
    case FaultResult::End::kSkipped:
      break;
  }
  return "skipped";
}

/// What the soak came to.
void Judge(const Status& end, const Doer& doer, Nanoseconds over, FaultResult* result) {
  result->message = end.message();
  if (end.ok()) {
    result->end = FaultResult::End::kWentOn;
    result->after = doer.resumed();
  } else if (end.code() == StatusCode::kInternal) {
    result->end = FaultResult::End::kWrongBytes;
  } else if (doer.hung()) {
    result->end = FaultResult::End::kHung;
  } else {
    result->end = FaultResult::End::kPeerDead;
    result->after = doer.begun() ? over - doer.began() : -1;
  }
}

}  // namespace

std::string_view FaultName(Fault fault) {
  return std::find_if(kFaults.begin(), kFaults.end(), [&](const auto& one) { return one.second == fault; })->first;
}

Result<std::vector<Fault>> FaultsFromNames(std::string_view names) {
  std::vector<Fault> faults;
  if (names == "all") {
    for (const auto& one : kFaults) faults.push_back(one.second);
    return faults;
  }
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    const auto known = std::find_if(kFaults.begin(), kFaults.end(), [&](const auto& one) { return one.first == name; });
    if (known == kFaults.end()) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("--scenarios: found \"{}\", allowed: all, or some of kill,freeze,cut,flap,loss", name));
    }
    faults.push_back(known->second);
    begin = end + 1;
  }
  return faults;
}

bool NeedsLink(Fault fault) {
  return fault == Fault::kCut || fault == Fault::kFlap || fault == Fault::kLoss;
}

Result<std::unique_ptr<FaultPeer>> FaultPeer::Start(const std::vector<std::string>& flags, const TestLink* link) {
  std::unique_ptr<FaultPeer> peer(new FaultPeer(link));
  std::vector<std::string> words{"weir-perf", "serve", "--once", "--port=0", fmt::format("--bind={}", peer->host_)};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Error(StatusCode::kResourceExhausted, "cannot make a pipe");
  peer->sayings_ = UniqueFd(ends[0]);
  {
    const UniqueFd theirs(ends[1]);  // Shut here once it has it, else its end could not be read.
    peer->child_ = fork();
    if (peer->child_ == 0) BecomePeer(theirs.get(), link != nullptr ? link->other() : -1, pointers.data());
  }
  if (peer->child_ < 0) return Error(StatusCode::kResourceExhausted, "cannot start a process for the peer");
  if (Status status = peer->Await(); !status.ok()) return tl::unexpected(status);
  return peer;
}

FaultPeer::~FaultPeer() {
  if (child_ < 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void FaultPeer::Signal(int signal) const noexcept {
  kill(child_, signal);
}

/// Reads what it says, line by line, until it serves.
Status FaultPeer::Await() {
  constexpr std::string_view kBefore = "serving on ";
  std::string said;
  std::array<char, 256> some;
  while (true) {
    const ssize_t got = read(sayings_.get(), some.data(), some.size());
    if (got <= 0) return Status(StatusCode::kUnavailable, "the peer does not serve: " + said);
    said.append(some.data(), static_cast<std::size_t>(got));
    const std::size_t begin = said.find(kBefore);
    const std::size_t end = begin == std::string::npos ? begin : said.find('\n', begin);
    if (end == std::string::npos) continue;
    const std::string line = said.substr(begin, end - begin);
    port_ = static_cast<std::uint16_t>(std::strtoul(line.c_str() + line.find(':') + 1, nullptr, 10));
    return Status::Ok();
  }
}

Result<FaultResult> MeasureFault(Fault fault, const FaultOptions& options, const FaultPeer& peer, const Lose& lose,
                                 Rendezvous* rendezvous, transport::Transport* transport) {
  FaultResult result;
  result.fault = fault;
  result.done = Done(fault, options);
  result.bound = fault == Fault::kKill ? options.exit_bound : fault == Fault::kCut ? options.bound : -1;
  const Plan plan{TestKind::kSoak, options.bytes, options.seed};
  const ChangingDirectives directives(plan.count);
  transport::Pacer pacer;
  transport::Lane lane(&pacer, &directives);
  auto channels = AskFor(plan, rendezvous, transport, &lane);
  if (!channels) return tl::unexpected(channels.error());
  Doer doer(fault, options, peer, lose);
  SoakResult seen;
  Status end = Soak(plan, true, &*channels, &seen, [&](const SoakResult& now) { return doer.Look(now); });
  const Nanoseconds over = SteadyClock().Now();
  if (const Status link = doer.Mend(); !link.ok()) return tl::unexpected(link);
  result.bytes = seen.bytes;
  if (end.ok()) {
    const auto told = rendezvous->Receive();
    if (!told || !told->starts_with("done ")) {
      end = Status(StatusCode::kInternal, "the other end says: " + (told ? *told : told.error().message()));
    }
  }
  Judge(end, doer, over, &result);
  return result;
}

std::string_view Verdict(const FaultResult& result) {
  if (result.end == FaultResult::End::kSkipped) return "skipped";
  if (!MustBeNoticed(result.fault)) return result.end == FaultResult::End::kWentOn ? "yes" : "no";
  if (result.end != FaultResult::End::kPeerDead || result.after < 0) return "no";
  return result.after <= result.bound ? "yes" : "late";
}

Sheet FaultsSheet(const std::vector<FaultResult>& results) {
  Sheet sheet;
  sheet.title = "Random messages both ways, and a fault";
  sheet.columns = {{"scenario", "scenario"}, {"done", "done"},         {"outcome", "outcome"},
                   {"after_ms", "after ms"}, {"bound_ms", "bound ms"}, {"bytes_compared", "GB compared"},
                   {"right", "right"},       {"message", "why"}};
  for (const FaultResult& one : results) {
    const auto bytes = static_cast<double>(one.bytes);
    const auto milliseconds = [](Nanoseconds span) {
      return Number(span < 0 ? -1 : static_cast<double>(span) * 1e-6, 3, Milliseconds(span));
    };
    sheet.rows.push_back({Text(std::string(FaultName(one.fault))), Text(one.done), Text(std::string(EndName(one.end))),
                          milliseconds(one.after), milliseconds(one.bound),
                          Number(bytes, 0, fmt::format("{:.3f}", bytes * 1e-9)), Text(std::string(Verdict(one))),
                          Text(one.message)});
  }
  sheet.notes =
      "after ms: of \"peer declared dead\" from the fault on; of \"went on\" from the fault's end until the next "
      "message was there";
  return sheet;
}

}  // namespace weir::tools
