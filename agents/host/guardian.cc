#include "agents/host/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "coflow/log.h"

extern char** environ;

namespace weir::agents {
namespace {

using SettingKey = std::pair<std::int64_t, std::uint64_t>;

constexpr std::size_t kSettingsMax = 1u << 16;
constexpr int kRestorePatience_ms = 2000;  // for the last guardian to do its work; the agent is ending

std::string FormatKnow(const Setting& setting) {
  std::array<char, 160> line;
  const int size = std::snprintf(line.data(), line.size(), "know %ld %lu %d %lu %lu\n", setting.pid, setting.start_time,
                                 setting.socket.fd, setting.socket.inode, setting.original);
  return std::string(line.data(), static_cast<std::size_t>(size));
}

void ReadLine(const std::string& line, std::map<SettingKey, Setting>* settings) {
  Setting setting;
  if (std::sscanf(line.c_str(), "know %ld %lu %d %lu %lu", &setting.pid, &setting.start_time, &setting.socket.fd,
                  &setting.socket.inode, &setting.original) == 5) {
    if (settings->size() < kSettingsMax) (*settings)[{setting.pid, setting.socket.inode}] = setting;
  } else if (std::sscanf(line.c_str(), "forget %ld %lu", &setting.pid, &setting.socket.inode) == 2) {
    settings->erase({setting.pid, setting.socket.inode});
  }
}

/// The number of a descriptor may have changed since; the inode has not.
void Restore(const Setting& setting) {
  const auto process = ForeignProcess::Open(setting.pid);
  if (!process || process->start_time() != setting.start_time) return;
  auto borrowed = process->Borrow(setting.socket);
  if (!borrowed) {
    for (const ForeignSocket& each : process->Sockets()) {
      if (each.inode == setting.socket.inode) borrowed = process->Borrow(each);
    }
  }
  if (borrowed) SetPacingRate(borrowed->get(), setting.original);
}

}  // namespace

Guardian::~Guardian() {
  pipe_ = UniqueFd();
  const UniqueFd ended(child_ > 0 ? static_cast<int>(syscall(SYS_pidfd_open, child_, 0)) : -1);
  pollfd waiting{ended.get(), POLLIN, 0};
  if (ended && poll(&waiting, 1, kRestorePatience_ms) == 1) waitpid(std::exchange(child_, -1), nullptr, 0);
  End();
}

/// Whatever it knows is not restored: another one is going to know it, or nobody needs to any more.
void Guardian::End() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  child_ = -1;
  pipe_ = UniqueFd();
}

void Guardian::Tend() {
  if (child_ <= 0 || waitpid(child_, nullptr, WNOHANG) != child_) return;
  child_ = -1;
  pipe_ = UniqueFd();
  if (settings_.empty()) return;
  const Status started = StartAndTellAll();
  log::Warn("guardian_ended", {{"caps", settings_.size()}, {"started_again", started.ok()}});
}

Status Guardian::Know(const Setting& setting) {
  if (settings_.size() >= kSettingsMax) {
    return Status(StatusCode::kResourceExhausted,
                  "the guardian knows " + std::to_string(kSettingsMax) + " caps already");
  }
  settings_[{setting.pid, setting.socket.inode}] = setting;
  const Status told = Tell(FormatKnow(setting));
  if (!told.ok()) settings_.erase({setting.pid, setting.socket.inode});
  return told;
}

void Guardian::Forget(std::int64_t pid, std::uint64_t inode) {
  if (settings_.erase({pid, inode}) == 0) return;
  // Should it not hear: restoring once more what was restored does no harm.
  static_cast<void>(Tell("forget " + std::to_string(pid) + " " + std::to_string(inode) + "\n"));
}

Status Guardian::Tell(const std::string& line) {
  return pipe_ && Write(line).ok() ? Status::Ok() : StartAndTellAll();
}

/// What fits into the pipe is in it before there is a guardian, so that one that exists knows, should we end then.
Status Guardian::StartAndTellAll() {
  End();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Status(StatusCode::kResourceExhausted, std::string("no pipe for the guardian: ") + std::strerror(errno));
  }
  UniqueFd reader(ends[0]);
  pipe_ = UniqueFd(ends[1]);
  signal(SIGPIPE, SIG_IGN);
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);  // Should it be frozen, we are not.
  auto next = settings_.begin();
  while (next != settings_.end() && WriteNow(FormatKnow(next->second))) ++next;
  if (Status started = Start(reader.get()); !started.ok()) {
    pipe_ = UniqueFd();
    return started;
  }
  reader = UniqueFd();
  for (; next != settings_.end(); ++next) {
    if (const Status told = Write(FormatKnow(next->second)); !told.ok()) return told;
  }
  return Status::Ok();
}

/// Lines are shorter than PIPE_BUF: written whole or not at all. SIGPIPE is ignored by the agent.
bool Guardian::WriteNow(const std::string& line) {
  return write(pipe_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

Status Guardian::Write(const std::string& line) {
  while (!WriteNow(line)) {
    pollfd room{pipe_.get(), POLLOUT, 0};
    if (errno == EINTR || (errno == EAGAIN && poll(&room, 1, kPatience_ms) == 1)) continue;
    return Status(StatusCode::kUnavailable, std::string("the guardian does not listen: ") + std::strerror(errno));
  }
  return Status::Ok();
}

/// `fd` is where it reads from.
Status Guardian::Start(int fd) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);  // What ends the agent's terminal must not end it.
  std::array<char, 16> name{"weir-agent"};
  std::array<char, 16> verb{"guardian"};
  std::array<char*, 3> arguments{name.data(), verb.data(), nullptr};
  const int error = posix_spawn(&child_, "/proc/self/exe", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return Status::Ok();
  child_ = -1;
  return Status(StatusCode::kUnavailable, std::string("cannot start the guardian: ") + std::strerror(error));
}

int RunGuardian(int fd) {
  // Whoever ends the agent in order may signal us too; we end when the pipe does, after the work is done.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  std::map<SettingKey, Setting> settings;
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
      ReadLine(text.substr(0, end), &settings);
    }
  }
  for (const auto& [key, setting] : settings) Restore(setting);
  return 0;
}

}  // namespace weir::agents
