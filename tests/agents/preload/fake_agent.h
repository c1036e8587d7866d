#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agents/client/segment.h"

namespace weir::testing {

/// Speaks the attach protocol and owns the segments it gave out; the test turns the gates by hand. Its heartbeats are
/// of a minute ahead, so that a test that is not run for a while is not an agent that died. Threads: its own two; all
/// methods from the test's.
class FakeAgent {
 public:
  FakeAgent();
  ~FakeAgent();
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  const std::string& socket_path() const { return socket_path_; }
  std::size_t attached() const;
  /// The segment of the n-th process that attached. WaitFor() it first.
  client::Segment* segment(std::size_t n = 0) const;
  const client::AttachRequest& request(std::size_t n = 0) const;

  /// What every gate of a process that attaches from now on is at first; such a hold lasts a minute.
  void SetFirstGate(client::GateState gate) { first_gate_ = gate; }
  void SetGate(std::size_t process, std::uint32_t lane, client::GateState gate,
               std::int64_t hold_for_ns = client::kHoldMax_ns);
  void SetPacing(std::size_t process, std::uint32_t lane, std::uint64_t rate, std::uint32_t lowat);
  void SetMarks(std::size_t process, std::uint32_t lane, std::uint32_t marks);
  /// Processes are refused from now on, by an agent of this version.
  void RefuseAll(std::uint16_t version, const std::string& reason);
  /// No more heartbeats, as if the agent were frozen.
  void Freeze();
  void Thaw();
  /// As an agent that ends in good order.
  void Release(std::size_t process);

 private:
  struct Process {
    client::Segment* segment;
    client::AttachRequest request;
  };
  void Serve();
  void Beat();
  void StopBeating(std::int64_t last);
  void Answer(int connection);
  void Wake(client::Segment* segment, std::uint32_t lane);

  std::string directory_;
  std::string socket_path_;
  int listener_ = -1;
  int doorbell_fd_ = -1;
  std::atomic<bool> running_{true};
  std::atomic<client::GateState> first_gate_{client::GateState::kGo};
  mutable std::mutex mutex_;
  bool beating_ = true;
  std::vector<Process> processes_;
  client::AttachReply refusal_ = {};  // Sent if its status is not 0.
  std::thread server_;
  std::thread heart_;
};

/// Polls `condition` every millisecond for at most `seconds`.
bool WaitFor(const std::function<bool()>& condition, double seconds = 10);

/// A TCP server on 127.0.0.1 that reads everything from every connection and adds it up.
class Sink {
 public:
  Sink();
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  int port() const { return port_; }
  std::uint64_t bytes() const { return bytes_; }
  /// FNV-1a over the bytes of each connection, added up.
  std::uint64_t checksum() const { return checksum_; }
  std::uint64_t connections_closed() const { return closed_; }

 private:
  struct Connection {
    int fd;
    std::uint64_t hash;
  };
  void Serve();
  /// False once the connection has ended.
  bool Read(Connection* connection);
  int listener_ = -1;
  int port_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> checksum_{0};
  std::atomic<std::uint64_t> closed_{0};
  std::atomic<bool> running_{true};
  std::vector<Connection> connections_;  // The server's thread only.
  std::vector<char> buffer_;
  std::thread server_;
};

/// A program run under the preload library, with what it printed.
class Child {
 public:
  Child(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  bool Running();
  /// Exit status (128 + signal if killed), or -1 if it did not end within `seconds` (it is killed then).
  int Wait(double seconds = 90);
  /// Tells it to end in order (SIGTERM); as Wait.
  int Finish(double seconds = 90);
  const std::string& output() const { return output_; }

 private:
  void Reap(int status);
  pid_t pid_ = -1;
  int pipe_ = -1;
  int status_ = -1;
  bool ended_ = false;
  std::string output_;
};

}  // namespace weir::testing
