#include "tools/weir-perf/emulate/emulate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tools/weir-perf/emulate/board.h"

namespace weir::tools::emulate {
namespace {

constexpr std::uint32_t kEnded = 1;
constexpr std::uint32_t kFailed = 2;
/// What stays of a cycle beyond this is a leak: allocators keep some.
constexpr std::int64_t kMemoryMore_kb = 16 * 1024;

Status CheckNumber(const char* what, long long found, long long least, long long most) {
  if (found >= least && found <= most) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: {} to {}", what, found, least, most));
}

Status CheckOptions(const Options& options) {
  const auto slice = static_cast<long long>(options.slice_bytes);
  for (Status status :
       {CheckNumber("ranks", options.ranks, 2, kRanksMax), CheckNumber("channels", options.channels, 1, kChannelsMax),
        CheckNumber("rounds", options.rounds, 1, 1'000'000), CheckNumber("cycles", options.cycles, 1, 1'000'000),
        CheckNumber("receives posted together", options.group, 1, Net::kReceivesMax),
        CheckNumber("slice in bytes", slice, 4, 1 << 30), CheckNumber("idle in ns", options.idle, 0, kSecond)}) {
    if (!status.ok()) return status;
  }
  if (!options.agent_sockets.empty() && !options.namespaces.empty() &&
      options.agent_sockets.size() != options.namespaces.size()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("agent sockets: found {}, allowed: one for each of {} namespaces",
                              options.agent_sockets.size(), options.namespaces.size()));
  }
  if (options.collectives.size() * options.sizes.size() > kCasesMax) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("collectives times sizes: found {}, at most {}",
                              options.collectives.size() * options.sizes.size(), kCasesMax));
  }
  for (const Bytes size : options.sizes) {
    if (size < Bytes{1} << 32) continue;
    return Status(StatusCode::kInvalidArgument, fmt::format("size: found {}, allowed: below 4G", size));
  }
  return Status::Ok();
}

/// To the agent and into the network of the host that the rank stands for. Before it has threads, and before the plugin
/// is loaded.
Status EnterHost(const Options& options, int rank) {
  const auto turn = static_cast<std::size_t>(rank);
  const std::vector<std::string>& agents = options.agent_sockets;
  if (!agents.empty()) setenv("WEIR_AGENT_SOCKET", agents[turn % agents.size()].c_str(), 1);
  if (options.namespaces.empty()) return Status::Ok();
  const std::string path = "/run/netns/" + options.namespaces[turn % options.namespaces.size()];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int entered = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (entered != 0) {
    return Status(
        StatusCode::kNotFound,
        fmt::format("rank {}: cannot enter {}: {}; it needs root, and \"ip netns list\" shows those there are", rank,
                    path, std::strerror(error)));
  }
  return Status::Ok();
}

std::atomic<Board*> board_of_signals{nullptr};

/// While it lives, SIGINT and SIGTERM end the emulation in order: after the round that runs. In the ranks too, which
/// are forked from us and get a terminal's SIGINT themselves.
class EndOnSignal {
 public:
  explicit EndOnSignal(Board* board) {
    board_of_signals.store(board);
    struct sigaction action {};
    action.sa_handler = [](int) { board_of_signals.load()->AskToEnd(); };
    // Without SA_RESTART: whoever waits for the ranks hears of it at once.
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~EndOnSignal() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  /// In a rank, whose calls a signal must not break off.
  static void RestartCalls() {
    for (const int signal : kSignals) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      action.sa_flags |= SA_RESTART;
      sigaction(signal, &action, nullptr);
    }
  }
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM};
  std::array<struct sigaction, kSignals.size()> before_{};
};

[[noreturn]] void RunChild(const Options& options, int rank, Board* board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // Whoever ends the program ends its ranks.
  EndOnSignal::RestartCalls();
  RankTale& tale = board->tale(rank);
  for (const auto& [name, values] : options.per_rank) {
    setenv(name.c_str(), values[static_cast<std::size_t>(rank) % values.size()].c_str(), 1);
  }
  Status status = EnterHost(options, rank);
  if (status.ok()) status = Rank(options, rank, board).Run();
  if (!status.ok()) {
    std::strncpy(tale.message, status.message().c_str(), sizeof tale.message - 1);
    // One that stopped because another did has nothing of its own to say.
    tale.finished.store(status.code() == StatusCode::kUnavailable && board->stopped().load() != 0 ? kEnded : kFailed);
    board->stopped().store(1);
  } else {
    tale.finished.store(kEnded);
  }
  _exit(status.ok() ? 0 : 1);
}

/// What is wrong with how a rank ended, or ok.
Status JudgeEnd(const Options& options, int rank, int wait_status, const RankTale& tale) {
  const std::uint32_t finished = tale.finished.load();
  if (finished == kFailed) return Status(StatusCode::kInternal, tale.message);
  if (finished == kEnded) return Status::Ok();
  const bool victim = options.fault == Fault::kKill && rank == options.ranks - 1;
  if (victim && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) return Status::Ok();
  return Status(StatusCode::kInternal,
                WIFSIGNALED(wait_status)
                    ? fmt::format("rank {} was ended by signal {}", rank, WTERMSIG(wait_status))
                    : fmt::format("rank {} ended with {} and said nothing", rank, WEXITSTATUS(wait_status)));
}

std::vector<pid_t> StartRanks(const Options& options, Board* board) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) RunChild(options, rank, board);
    if (child < 0) {
      board->stopped().store(1);
      break;
    }
    children.push_back(child);
  }
  return children;
}

/// Waits for all of them; the first thing that went wrong.
Status WaitForRanks(const Options& options, const std::vector<pid_t>& children, Board* board) {
  Status first;
  for (std::size_t i = 0; i < children.size(); ++i) {
    int wait_status = 0;
    pid_t ended = 0;
    // In any order, so that one that dies stops the others.
    do {
      ended = waitpid(-1, &wait_status, 0);
    } while (ended < 0 && errno == EINTR);
    const auto found = std::find(children.begin(), children.end(), ended);
    if (found == children.end()) return Status(StatusCode::kInternal, "a rank was lost sight of");
    const int rank = static_cast<int>(found - children.begin());
    Status status = JudgeEnd(options, rank, wait_status, board->tale(rank));
    if (status.ok()) continue;
    board->stopped().store(1);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

template <typename T, typename Member>
T Sum(const Options& options, Board* board, Member member) {
  T sum = 0;
  for (int rank = 0; rank < options.ranks; ++rank) sum += board->tale(rank).*member;
  return sum;
}

template <typename T, typename Member>
T Most(const Options& options, Board* board, Member member) {
  T most = 0;
  for (int rank = 0; rank < options.ranks; ++rank) most = std::max<T>(most, board->tale(rank).*member);
  return most;
}

/// After a killed rank, some other must have been told so, with NCCL's code for a remote error.
Status JudgeKill(const Options& options, Board* board) {
  if (board->provoked_at().load() == 0) {
    return Status(StatusCode::kInternal, "the rank that was to be killed was not: all was done before");
  }
  if (Sum<std::uint64_t>(options, board, &RankTale::errors_seen) == 0) {
    return Status(StatusCode::kInternal, "a rank was killed, and no other was told");
  }
  for (int rank = 0; rank < options.ranks; ++rank) {
    const RankTale& tale = board->tale(rank);
    if (tale.errors_seen == 0 || tale.error_code == static_cast<std::uint32_t>(abi::Result::kRemote)) continue;
    return Status(StatusCode::kInternal, fmt::format("rank {} was told {} of a killed peer, and {} would be right",
                                                     rank, tale.error_code, static_cast<int>(abi::Result::kRemote)));
  }
  return Status::Ok();
}

Status JudgeLeaks(const Options& options, Board* board) {
  const auto descriptors = Most<std::int64_t>(options, board, &RankTale::descriptors_more);
  const auto memory = Most<std::int64_t>(options, board, &RankTale::memory_more_kb);
  if (options.cycles > 1 && (descriptors > 0 || memory > kMemoryMore_kb)) {
    return Status(StatusCode::kInternal, fmt::format("after {} cycles a rank has {} descriptors and {} KiB more than "
                                                     "after the first; at most 0 and {} are none",
                                                     options.cycles, descriptors, memory, kMemoryMore_kb));
  }
  return Status::Ok();
}

std::string Milliseconds(double value) {
  return fmt::format("{:.3f}", value);
}

Sheet MakeSheet(const Options& options, int version, Board* board) {
  Sheet sheet;
  sheet.title = "NCCL's proxy, emulated";
  sheet.columns = {
      {"collective", "collective"}, {"abi", "abi"},       {"ranks", "ranks"}, {"channels", "channels"},
      {"bytes", "bytes"},           {"rounds", "rounds"}, {"ms", "ms"},       {"bytes_per_second", "GB/s"}};
  std::size_t index = 0;
  for (const Collective collective : options.collectives) {
    for (const Bytes size : options.sizes) {
      Nanoseconds longest = 0;
      for (int rank = 0; rank < options.ranks; ++rank) longest = std::max(longest, board->tale(rank).case_time[index]);
      const auto rounds = static_cast<double>(board->tale(0).case_rounds[index]);
      ++index;
      if (rounds == 0) continue;  // It was to end before.
      const double ms = static_cast<double>(longest) / 1e6 / rounds;
      const double rate = ms > 0 ? static_cast<double>(size) / ms * 1e3 : 0;
      sheet.rows.push_back({Text(std::string(CollectiveName(collective))), Text(fmt::format("v{}", version)),
                            Number(options.ranks, 0, std::to_string(options.ranks)),
                            Number(options.channels, 0, std::to_string(options.channels)),
                            Number(static_cast<double>(size), 0, std::to_string(size)),
                            Number(rounds, 0, fmt::format("{:.0f}", rounds)), Number(ms, 6, Milliseconds(ms)),
                            Number(rate, 0, fmt::format("{:.3f}", rate / 1e9))});
    }
  }
  sheet.notes = fmt::format(
      "{} sends of {:.3f} GB, {} receives; \"not now\" {} times to isend, {} to irecv; {} numbers compared.\n",
      Sum<std::uint64_t>(options, board, &RankTale::sends),
      static_cast<double>(Sum<std::uint64_t>(options, board, &RankTale::bytes_sent)) / 1e9,
      Sum<std::uint64_t>(options, board, &RankTale::receives),
      Sum<std::uint64_t>(options, board, &RankTale::send_nulls),
      Sum<std::uint64_t>(options, board, &RankTale::receive_nulls),
      Sum<std::uint64_t>(options, board, &RankTale::numbers_checked));
  if (options.flush) {
    sheet.notes += fmt::format("{} flushes.\n", Sum<std::uint64_t>(options, board, &RankTale::flushes));
  }
  if (!options.report.empty()) {
    const auto sends = Sum<std::uint64_t>(options, board, &RankTale::sends);
    const auto right = Sum<std::uint64_t>(options, board, &RankTale::sends_attributed);
    sheet.notes +=
        fmt::format("Of the sends, {} were put to the right coflow ({:.2f} %); of {} coflows, {} were found whole.\n",
                    right, sends == 0 ? 0 : 100.0 * static_cast<double>(right) / static_cast<double>(sends),
                    Sum<std::uint64_t>(options, board, &RankTale::coflows),
                    Sum<std::uint64_t>(options, board, &RankTale::coflows_whole));
  }
  return sheet;
}

/// What a fault showed: one row.
Sheet MakeFaultSheet(const Options& options, int version, Board* board) {
  const double error_ms = static_cast<double>(Most<Nanoseconds>(options, board, &RankTale::error_after)) / 1e6;
  const double close_ms = static_cast<double>(Most<Nanoseconds>(options, board, &RankTale::close_longest)) / 1e6;
  const auto errors = static_cast<double>(Sum<std::uint64_t>(options, board, &RankTale::errors_seen));
  const auto descriptors = static_cast<double>(Most<std::int64_t>(options, board, &RankTale::descriptors_more));
  const auto memory = static_cast<double>(Most<std::int64_t>(options, board, &RankTale::memory_more_kb));
  Sheet sheet;
  sheet.title = "NCCL's proxy, emulated, with a fault";
  sheet.columns = {{"fault", "fault"},
                   {"abi", "abi"},
                   {"ranks", "ranks"},
                   {"cycles", "cycles"},
                   {"errors", "errors seen"},
                   {"error_after_ms", "first after ms"},
                   {"close_longest_ms", "longest close ms"},
                   {"descriptors_more", "descriptors more"},
                   {"memory_more_kb", "KiB more"}};
  sheet.rows.push_back(
      {Text(options.fault == Fault::kKill ? "kill" : "abort"), Text(fmt::format("v{}", version)),
       Number(options.ranks, 0, std::to_string(options.ranks)),
       Number(options.cycles, 0, std::to_string(options.cycles)), Number(errors, 0, fmt::format("{:.0f}", errors)),
       Number(error_ms, 6, Milliseconds(error_ms)), Number(close_ms, 6, Milliseconds(close_ms)),
       Number(descriptors, 0, fmt::format("{:.0f}", descriptors)), Number(memory, 0, fmt::format("{:.0f}", memory))});
  return sheet;
}

}  // namespace

Result<Sheet> Emulate(const Options& options) {
  if (Status status = CheckOptions(options); !status.ok()) return tl::unexpected(status);
  // Opened here only to say what is wrong with it once and not from every rank; each rank opens it for itself.
  auto net = Net::Open(options.plugin, options.version);
  if (!net) return tl::unexpected(net.error());
  auto board = Board::Make(options.ranks, options.channels);
  if (!board) return tl::unexpected(board.error());
  std::optional<EndOnSignal> end_on_signal;
  if (options.fault == Fault::kNone) end_on_signal.emplace(board->get());
  const std::vector<pid_t> children = StartRanks(options, board->get());
  Status status = WaitForRanks(options, children, board->get());
  if (status.ok() && children.size() < static_cast<std::size_t>(options.ranks)) {
    status = Status(StatusCode::kResourceExhausted, "the system has no more processes for us");
  }
  if (status.ok()) status = JudgeLeaks(options, board->get());
  if (status.ok() && options.fault == Fault::kKill) status = JudgeKill(options, board->get());
  if (!status.ok()) return tl::unexpected(status);
  return options.fault == Fault::kNone ? MakeSheet(options, (*net)->version(), board->get())
                                       : MakeFaultSheet(options, (*net)->version(), board->get());
}

Result<std::pair<std::string, std::vector<std::string>>> ParsePerRank(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("variable of ranks: found \"{}\", allowed: NAME=VALUE|VALUE", text));
  }
  std::pair<std::string, std::vector<std::string>> parsed{std::string(text.substr(0, equals)), {}};
  std::size_t at = equals + 1;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('|', at), text.size());
    parsed.second.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parsed;
}

Result<Fault> ParseFault(std::string_view text) {
  if (text == "none") return Fault::kNone;
  if (text == "abort") return Fault::kAbort;
  if (text == "kill") return Fault::kKill;
  return Error(StatusCode::kInvalidArgument, fmt::format("fault: found \"{}\", allowed: none, abort, kill", text));
}

Result<int> ParseVersion(std::string_view text) {
  if (text.empty()) return 0;
  const std::string_view digits = text.starts_with('v') ? text.substr(1) : text;
  int version = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (error == std::errc() && end == digits.data() + digits.size() && version > 0) return version;
  return Error(StatusCode::kInvalidArgument,
               fmt::format("version of the interface: found \"{}\", allowed: v6 to v12, or nothing", text));
}

}  // namespace weir::tools::emulate
