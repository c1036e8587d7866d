#include "tools/weir-perf/link_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "coflow/units.h"
#include "transport/clock.h"

namespace weir::tools {
namespace {

constexpr Nanoseconds kPatience = 10 * kSecond;

/// Its status as waitpid() has it; one that does not end in time is ended.
Result<int> Await(pid_t child) {
  const Nanoseconds until = transport::SteadyClock().Now() + kPatience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (transport::SteadyClock().Now() > until) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return Error(StatusCode::kUnavailable, fmt::format("is not done after {:.0f} s", ToSeconds(kPatience)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

Status LinkProgram::Lose(double probability) const {
  std::string percent = fmt::format("{:g}", probability * 100);
  std::string name = program_;
  const std::array<char*, 3> words{name.data(), percent.data(), nullptr};
  const auto failed = [&](const std::string& how) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("--link_program: \"{} {}\" {}; it must end with 0 when the link loses that many percent",
                              program_, percent, how));
  };
  pid_t child = -1;
  const int error = posix_spawnp(&child, name.c_str(), nullptr, nullptr, words.data(), environ);
  if (error != 0) return failed(std::string("does not start: ") + std::strerror(error));
  const auto status = Await(child);
  if (!status) return failed(status.error().message());
  if (WIFSIGNALED(*status)) return failed(fmt::format("was ended by signal {}", WTERMSIG(*status)));
  if (WEXITSTATUS(*status) != 0) return failed(fmt::format("ended with {}", WEXITSTATUS(*status)));
  return Status::Ok();
}

}  // namespace weir::tools
