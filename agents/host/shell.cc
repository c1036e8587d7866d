#include "agents/host/shell.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "agents/host/adopter.h"
#include "agents/host/attach_shell.h"
#include "agents/host/coordinator_link.h"
#include "agents/host/doorbell.h"
#include "agents/host/metrics.h"
#include "agents/host/segment_host.h"
#include "agents/host/sock_diag.h"
#include "agents/host/status_json.h"
#include "coflow/log.h"
#include "coflow/wire/http_shell.h"

namespace weir::agents {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kRoundsMax = 64;  // of carrying out and deciding again, in one turn of the loop

Nanoseconds Now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

struct AgentShell::Impl {
  /// One attached process: its segment, and the descriptor that tells of its end.
  struct Attached {
    std::unique_ptr<SegmentHost> segment;
    std::unique_ptr<asio::posix::stream_descriptor> pidfd;
  };

  explicit Impl(ShellOptions shell_options)
      : options(std::move(shell_options)),
        engine(options.engine),
        server(loop, {[this](const PeerCredentials& peer, const JobInfo& job) { return OnAttach(peer, job); },
                      [this](ProcessId process, bool sent) { OnAttachDone(process, sent); },
                      [this](const PeerCredentials& peer, const std::string& line) { return OnRequest(peer, line); }}),
        link(loop, options.coordinator,
             {[this] { OnConnected(); }, [this](const std::string& reason) { OnDisconnected(reason); },
              [this](const std::string& reason) { SayLost(reason); },
              [this](std::string_view frame) { OnFrame(frame); }}) {}

  // ---- Processes ----

  Result<AttachServer::Attached> OnAttach(const PeerCredentials& peer, const JobInfo& job) {
    const int fd = peer.pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)) : -1;
    if (fd < 0) {
      return Error(StatusCode::kUnsupported, "the agent cannot watch this process (another pid namespace?)");
    }
    auto pidfd = std::make_unique<asio::posix::stream_descriptor>(loop, fd);
    auto segment = SegmentHost::Create(Now());
    if (!segment) return tl::unexpected(segment.error());
    const auto process = engine.OnProcessAttached(Now(), {job, peer.pid, false});
    if (!process) return tl::unexpected(process.error());
    const int memfd = (*segment)->memfd();
    Attached& attached = processes[*process];
    attached.segment = std::move(*segment);
    attached.pidfd = std::move(pidfd);
    ++counters.attaches;
    log::Info("process_attached", {{"pid", peer.pid}, {"job", job.name}, {"tenant", job.tenant}});
    if (LivesInAnotherNetwork(peer.pid)) {
      log::Warn("process_in_another_network",
                {{"pid", peer.pid},
                 {"consequence", "its queues cannot be seen; run an agent inside that network namespace"}});
    }
    return AttachServer::Attached{memfd, doorbell->memfd(), *process};
  }

  void OnAttachDone(ProcessId process, bool sent) {
    const auto found = processes.find(process);
    if (found == processes.end()) return;
    if (!sent) return Remove(process, "attach reply not taken");
    found->second.segment->CloseMemfd();
    found->second.pidfd->async_wait(asio::posix::stream_descriptor::wait_read, [this, process](error_code error) {
      if (!error) Remove(process, "ended");
    });
    Pump();
  }

  void Remove(ProcessId process, const char* reason) {
    Look();  // Its last words count; they may be that it detached, which removes it too.
    const auto found = processes.find(process);
    if (found == processes.end()) return Pump();
    found->second.segment->Release();
    processes.erase(process);
    engine.OnProcessDetached(Now(), process);
    log::Info("process_detached", {{"process", process.value}, {"reason", reason}});
    Pump();
  }

  std::string OnRequest(const PeerCredentials& peer, const std::string& line) {
    const std::string operation = RequestOperation(line);
    if (operation == "adopt") return OutcomeJson(OnAdopt(peer, line));
    if (operation != "status") {
      return OutcomeJson(Status(StatusCode::kInvalidArgument, "unknown \"op\"; \"status\" and \"adopt\" are known"));
    }
    return StatusJson(engine, Counted());
  }

  const ShellCounters& Counted() {
    counters.rings = doorbell->rings();
    counters.refused = server.refused();
    return counters;
  }

  wire::HttpPage PageAt(std::string_view path) {
    if (path == "/metrics") return {MetricsText(engine, Counted()), "text/plain; version=0.0.4"};
    if (path == "/v1/status") return {StatusJson(engine, Counted())};
    if (path == "/livez" || path == "/readyz") return {"{\"ok\":true}\n"};
    return {};
  }

  Status OnAdopt(const PeerCredentials& peer, const std::string& line) {
    const auto request = ReadAdoptRequest(line);
    if (!request) return request.error();
    const auto process = adopter->Adopt(Now(), request->pid, request->job, peer.uid);
    if (!process) return process.error();
    log::Info("process_adopted", {{"pid", request->pid}, {"job", request->job.name}, {"uid", peer.uid}});
    adopter->Look(Now());
    Pump();
    return Status::Ok();
  }

  // ---- Coordinator ----

  void OnConnected() {
    engine.OnConnected(Now());
    Pump();
  }

  void OnDisconnected(const std::string& reason) {
    SayLost(reason);
    engine.OnDisconnected(Now());
    Pump();
  }

  void OnFrame(std::string_view frame) {
    engine.OnCoordinatorMessage(Now(), frame);
    if (engine.connected() && !std::exchange(managed, true)) {
      lost_reason.clear();
      log::Info("coordinator_connected", {{"address", options.coordinator}, {"epoch", engine.epoch()}});
      if (engine.host_unknown()) {
        log::Warn("host_unknown", {{"host", options.engine.host},
                                   {"consequence", "unmanaged: the topology has neither this name nor our addresses"}});
      }
    }
    Pump();
  }

  /// Attempts go on four times a second and more: what fails in the same way is said once.
  void SayLost(const std::string& reason) {
    const bool was_managed = std::exchange(managed, false);
    if (!was_managed && reason == lost_reason) return;
    lost_reason = reason;
    log::Warn(was_managed ? "coordinator_lost" : "coordinator_unreachable",
              {{"address", options.coordinator}, {"reason", reason}});
  }

  // ---- The turn of the loop ----

  /// AnyThread: the doorbell's.
  void OnRing() {
    if (ring_posted.exchange(true)) return;
    asio::post(loop, [this] {
      ring_posted.store(false);
      Look();
      Pump();
    });
  }

  /// Reads what the processes wrote.
  void Look() {
    ++counters.looks;
    std::vector<ProcessId> gone;
    for (auto& [process, attached] : processes) {
      news.Clear();
      attached.segment->Look(&news);
      const Nanoseconds now = Now();
      for (const auto& [lane, peer] : news.lanes) engine.OnLaneAppeared(now, {process, lane}, peer);
      for (const SegmentHost::Message& message : news.messages) {
        engine.OnMessageBegun(now, {process, message.lane}, message.time, message.bytes, message.known_by);
      }
      engine.OnMessagesLost(news.messages_lost);
      for (const auto& [lane, sample] : news.samples) engine.OnSample(now, {process, lane}, sample);
      if (news.detached) gone.push_back(process);
    }
    for (const ProcessId process : gone) {
      processes.erase(process);
      engine.OnProcessDetached(Now(), process);
    }
  }

  /// Carries out what the engine wants, until it wants nothing, and sets the timer.
  void Pump() {
    for (int round = 0; round < kRoundsMax; ++round) {
      const Actions actions = engine.Take(Now());
      if (actions.empty()) break;
      Carry(actions);
    }
    doorbell->Look(engine.any_active());
    const Nanoseconds next = std::min({engine.NextDeadline(), beat_at, adopter->NextLook()});
    timer.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)));
    timer.async_wait([this](error_code error) {
      if (!error) OnTimer();
    });
  }

  void OnTimer() {
    const Nanoseconds now = Now();
    const bool beat = now >= beat_at;
    if (beat) {
      beat_at = now + client::kHeartbeatEvery_ns;
      for (auto& [process, attached] : processes) attached.segment->Beat(now);
    }
    if (beat || engine.any_active()) Look();  // Whatever became of the rings.
    adopter->Look(now);
    engine.OnTime(Now());
    Pump();
  }

  void Carry(const Actions& actions) {
    CarryWrites(actions);
    for (const LaneRef lane : actions.measures) Measure(lane);
    if (!actions.messages.empty()) link.Send(actions.messages);
    for (const Actions::Arm& arm : actions.arms) {
      SegmentHost* segment = SegmentOf(arm.lane.process);
      if (segment == nullptr) continue;
      segment->Arm(arm.lane.index, arm.start, arm.drain);
      // What was written before the arming did not ring.
      engine.OnSample(Now(), arm.lane, segment->Sample(arm.lane.index));
    }
    if (!actions.refusal.empty()) log::Warn("coordinator_refused", {{"reason", actions.refusal}});
    if (actions.disconnect) link.Drop(actions.disconnect_reason);
  }

  void CarryWrites(const Actions& actions) {
    std::map<ProcessId, std::vector<std::uint32_t>> woken;
    for (const Actions::Write& write : actions.writes) {
      SegmentHost* segment = SegmentOf(write.lane.process);
      if (segment == nullptr) {
        adopter->Write(write.lane, write.control);
        continue;
      }
      segment->Write(write.lane.index, write.control);
      if (write.wake) woken[write.lane.process].push_back(write.lane.index);
    }
    for (const auto& [process, lanes] : woken) SegmentOf(process)->Wake(lanes);
  }

  void Measure(LaneRef lane) {
    ++counters.measures;
    QueueSample sample;
    SegmentHost* segment = SegmentOf(lane.process);
    const auto queues = segment == nullptr ? adopter->Queues(lane) : diag->Query(segment->Sockets(lane.index));
    if (queues) {
      sample = SockDiag::Sum(*queues);
    } else {
      sample.reachable = false;
    }
    engine.OnQueueMeasured(Now(), lane, sample);
  }

  SegmentHost* SegmentOf(ProcessId process) {
    const auto found = processes.find(process);
    return found == processes.end() ? nullptr : found->second.segment.get();
  }

  void Stop() {
    log::Info("stopping", {{"processes", processes.size()}});
    server.Stop();
    link.Stop();
    for (auto& [process, attached] : processes) attached.segment->Release();
    adopter->Release();
    loop.stop();
  }

  const ShellOptions options;
  asio::io_context loop{1};
  asio::steady_timer timer{loop};
  asio::signal_set signals{loop, SIGINT, SIGTERM};
  AgentEngine engine;
  AttachServer server;
  CoordinatorLink link;
  wire::HttpServer http{loop, "/metrics, /v1/status, /livez and /readyz",
                        [this](std::string_view path) { return PageAt(path); }};
  std::optional<SockDiag> diag;
  std::optional<Adopter> adopter;  ///< Uses `diag` and `engine`.
  std::map<ProcessId, Attached> processes;
  SegmentHost::News news;
  ShellCounters counters;
  Nanoseconds beat_at = 0;
  bool managed = false;     ///< The coordinator has welcomed us on this connection.
  std::string lost_reason;  ///< As last said; empty since it welcomed us.
  std::atomic<bool> ring_posted{false};
  std::unique_ptr<DoorbellWaiter> doorbell;  // Last: its thread uses the loop.
};

AgentShell::AgentShell(ShellOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
AgentShell::~AgentShell() = default;

Status AgentShell::Start() {
  auto doorbell = DoorbellWaiter::Start([impl = impl_.get()] { impl->OnRing(); });
  if (!doorbell) return doorbell.error();
  impl_->doorbell = std::move(*doorbell);
  auto diag = SockDiag::Open();
  if (!diag) return diag.error();
  impl_->diag.emplace(std::move(*diag));
  impl_->adopter.emplace(impl_->engine, *impl_->diag);
  const ShellOptions& options = impl_->options;
  if (!options.http.empty()) {
    if (Status status = impl_->http.Listen(options.http, options.plaintext); !status.ok()) return status;
  }
  return impl_->server.Listen(options.socket, options.socket_mode);
}

std::string AgentShell::http_address() const {
  return impl_->http.address();
}

void AgentShell::Run() {
  impl_->signals.async_wait([this](const error_code& error, int) {
    if (!error) impl_->Stop();
  });
  impl_->link.Start();
  impl_->http.Serve();
  impl_->OnTimer();
  impl_->loop.run();
}

}  // namespace weir::agents
