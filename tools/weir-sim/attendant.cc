#include "tools/weir-sim/attendant.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "tools/weir-sim/options.h"
#include "tools/weir-sim/output_file.h"

namespace weir::tools {
namespace {

constexpr int kWake = SIGUSR2;  ///< Ends the thread's wait when the program is done.
constexpr long kPeriodNs = 200'000'000;
constexpr std::int64_t kQuickNs = 500'000'000;  ///< What is done sooner needs no bar.
constexpr std::size_t kBarWidth = 24;
constexpr std::size_t kWhatWidth = 30;

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) {
      return;  // nobody to tell
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string Left(double seconds) {
  return seconds < 100 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

Attendant::Attendant() {
  sigemptyset(&signals_);
  sigaddset(&signals_, kWake);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    // Who started us in the background may have asked to leave us alone.
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&signals_, signal);
    }
  }
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { Loop(); });
}

Attendant::~Attendant() {
  stop_ = true;
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
  Clear();
}

Status Attendant::ShowProgress(const std::string& mode) {
  if (mode != "auto" && mode != "on" && mode != "off") {
    return Status(StatusCode::kInvalidArgument, fmt::format("--progress: found \"{}\", allowed: auto, on, off", mode));
  }
  shown_ = mode == "on" || (mode == "auto" && isatty(STDERR_FILENO) == 1);
  return Status::Ok();
}

void Attendant::Begin(const std::string& what, std::uint64_t coflows) {
  const std::lock_guard lock(mutex_);
  what_ = what.size() > kWhatWidth ? what.substr(0, kWhatWidth - 3) + "..." : what;
  coflows_ = coflows;
  done_ = 0;
  begin_ns_ = SteadyNanoseconds();
}

void Attendant::Clear() {
  const std::lock_guard lock(mutex_);
  coflows_ = 0;
  Erase();
}

void Attendant::Erase() {
  if (drawn_) {
    WriteAll("\r\033[K");
    drawn_ = false;
  }
}

void Attendant::Loop() {
  const timespec period{0, kPeriodNs};
  while (!stop_) {
    const int signal = sigtimedwait(&signals_, nullptr, &period);
    if (signal == SIGINT || signal == SIGTERM) {
      Stop(signal);
    }
    if (shown_ && !stop_) {
      Draw();
    }
  }
}

void Attendant::Draw() {
  const std::lock_guard lock(mutex_);
  const std::int64_t elapsed = SteadyNanoseconds() - begin_ns_;
  if (coflows_ == 0 || elapsed < kQuickNs) {
    return;
  }
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(coflows_));
  const auto full = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  const std::string left =
      share > 0 ? ", about " + Left(static_cast<double>(elapsed) * 1e-9 * (1 - share) / share) + " left" : "";
  WriteAll(fmt::format("\r{} [{}{}] {:.0f} % of {} coflows{}\033[K", what_, std::string(full, '#'),
                       std::string(kBarWidth - full, '.'), 100 * share, coflows_, left));
  drawn_ = true;
}

void Attendant::Stop(int signal) {
  {
    const std::lock_guard lock(mutex_);
    Erase();
    const std::string where =
        coflows_ == 0 ? "" : fmt::format(" in {}, {} of {} coflows done", what_, done_.load(), coflows_);
    WriteAll(fmt::format("weir-sim: stopped by {}{}; no results\n", signal == SIGINT ? "SIGINT" : "SIGTERM", where));
  }
  RemoveUnfinishedOutput();
  _exit(128 + signal);
}

}  // namespace weir::tools
