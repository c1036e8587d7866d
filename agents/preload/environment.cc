#include "agents/preload/environment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>

#include "agents/client/attachment.h"
#include "agents/preload/real.h"

namespace weir::preload {
namespace {

enum class State { kUnread, kReading, kNoJobYet, kJob, kOff };

struct Environment {
  bool loopback;
  int log_level;
  char agent[sizeof(sockaddr_un::sun_path)];
  client::AttachRequest request;
  bool can_say;
  dev_t error_device;  // What standard error was when we were loaded. A program may close it and get a socket as
  ino_t error_inode;   // descriptor 2: our words must not end up in there.
};

constinit std::atomic<State> state{State::kUnread};
constinit Environment environment{};

bool IsSet(const char* name) noexcept {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
}

void Read() noexcept {
  State expected = State::kUnread;
  if (!state.compare_exchange_strong(expected, State::kReading)) return;
  const char* log = getenv("WEIR_LOG");
  environment.log_level = log == nullptr ? 1 : strcmp(log, "debug") == 0 ? 2 : strcmp(log, "off") == 0 ? 0 : 1;
  environment.loopback = IsSet("WEIR_MANAGE_LOOPBACK");
  const char* agent = getenv("WEIR_AGENT_SOCKET");
  if (agent == nullptr || *agent == '\0') agent = "/run/weir/agent.sock";
  const std::size_t length = strnlen(agent, sizeof environment.agent - 1);
  memcpy(environment.agent, agent, length);
  struct stat error = {};
  environment.can_say = fstat(2, &error) == 0;
  environment.error_device = error.st_dev;
  environment.error_inode = error.st_ino;
  State next = State::kOff;
  if (!IsSet("WEIR_DISABLE")) {
    next = client::RequestFromEnvironment(&environment.request) ? State::kJob : State::kNoJobYet;
  }
  state.store(next, std::memory_order_release);
}

__attribute__((constructor)) void ReadEarly() {
  Read();
}

}  // namespace

bool EnvironmentAllows() noexcept {
  const State now = state.load(std::memory_order_acquire);
  if (now == State::kUnread) [[unlikely]] {
    Read();
    return EnvironmentAllows();
  }
  return now == State::kJob || now == State::kNoJobYet;
}

bool EnvironmentNamesJob() noexcept {
  State now = state.load(std::memory_order_acquire);
  if (now != State::kNoJobYet) return now == State::kJob;
  if (!state.compare_exchange_strong(now, State::kReading)) return false;
  const bool named = client::RequestFromEnvironment(&environment.request);
  state.store(named ? State::kJob : State::kOff, std::memory_order_release);
  return named;
}

const client::AttachRequest& Request() noexcept {
  return environment.request;
}

const char* AgentSocket() noexcept {
  return environment.agent;
}

bool ManagesLoopback() noexcept {
  return environment.loopback;
}

void Say(int level, const char* text, const char* more) noexcept {
  struct stat error = {};
  if (environment.log_level < level || !environment.can_say || fstat(2, &error) != 0 ||
      error.st_dev != environment.error_device || error.st_ino != environment.error_inode) {
    return;
  }
  char prefix[] = "weir-preload: ";
  char end[] = "\n";
  const iovec parts[] = {{prefix, sizeof prefix - 1},
                         {const_cast<char*>(text), strlen(text)},
                         {const_cast<char*>(more), strlen(more)},
                         {end, 1}};
  [[maybe_unused]] const ssize_t wrote = real::writev(2, static_cast<const iovec*>(parts), 4);
}

}  // namespace weir::preload
