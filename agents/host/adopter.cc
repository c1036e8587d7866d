#include "agents/host/adopter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "agents/client/segment.h"
#include "coflow/log.h"

namespace weir::agents {

Result<ProcessId> Adopter::Adopt(Nanoseconds now, std::int64_t pid, const JobInfo& job, std::uint32_t uid) {
  auto handle = ForeignProcess::Open(pid);
  if (!handle) return tl::unexpected(handle.error());
  if (uid != 0 && uid != handle->uid()) {
    return Error(StatusCode::kPermissionDenied, "process " + std::to_string(pid) + " belongs to another user");
  }
  for (const auto& [id, process] : engine_.processes()) {
    if (process.info.pid == pid) {
      return Error(StatusCode::kAlreadyExists, "process " + std::to_string(pid) + " is followed already");
    }
  }
  for (const ForeignSocket& socket : handle->Sockets()) {
    const auto borrowed = handle->Borrow(socket);
    if (!borrowed && borrowed.error().code() == StatusCode::kPermissionDenied) return tl::unexpected(borrowed.error());
  }
  const auto id = engine_.OnProcessAttached(now, {job, pid, true});
  if (!id) return tl::unexpected(id.error());
  processes_.emplace(*id, Process{std::move(*handle), {}, {}, {}, {}, 0});
  look_at_ = now;
  return *id;
}

Nanoseconds Adopter::NextLook() const {
  return processes_.empty() ? std::numeric_limits<Nanoseconds>::max() : look_at_;
}

void Adopter::Look(Nanoseconds now) {
  if (now < NextLook()) return;
  guardian_.Tend();
  bool active = false;
  for (auto at = processes_.begin(); at != processes_.end();) {
    auto& [id, process] = *at;
    if (process.handle.ended()) {
      log::Info("process_ended", {{"process", id.value}, {"pid", process.handle.pid()}});
      for (const auto& [inode, socket] : process.sockets) guardian_.Forget(process.handle.pid(), inode);
      engine_.OnProcessDetached(now, id);
      at = processes_.erase(at);
      continue;
    }
    if (now >= process.scan_at) Scan(now, id, process);
    SampleLanes(now, id, process);
    active = active || Active(id, process);
    ++at;
  }
  look_at_ = now + (active ? kLookActive : kLookIdle);
}

void Adopter::Scan(Nanoseconds now, ProcessId id, Process& process) {
  process.scan_at = now + kScanEvery;
  for (auto& [inode, socket] : process.sockets) socket.seen = false;
  for (auto& [inode, seen] : process.not_ours) seen = false;
  for (const ForeignSocket& found : process.handle.Sockets()) {
    if (const auto known = process.sockets.find(found.inode); known != process.sockets.end()) {
      known->second.id = found;
      known->second.seen = true;
    } else {
      AddSocket(now, id, process, found);
    }
  }
  std::erase_if(process.not_ours, [](const auto& entry) { return !entry.second; });
  std::erase_if(process.sockets, [&](const auto& entry) {
    if (!entry.second.seen) guardian_.Forget(process.handle.pid(), entry.first);
    return !entry.second.seen;
  });
}

void Adopter::AddSocket(Nanoseconds now, ProcessId id, Process& process, const ForeignSocket& found) {
  // A socket that is not connected yet may be at the next scan, so only other kinds are remembered as not ours.
  if (const auto known = process.not_ours.find(found.inode); known != process.not_ours.end()) {
    known->second = true;
    return;
  }
  if (process.sockets.size() >= client::kMaxSockets) return;
  const auto borrowed = process.handle.Borrow(found);
  if (!borrowed) return;
  Socket socket;
  socket.id = found;
  socket.seen = true;
  if (!DescribeTcp(borrowed->get(), &socket.key)) {
    if (!IsTcp(borrowed->get())) process.not_ours[found.inode] = true;
    return;
  }
  socket.original = PacingRate(borrowed->get());
  const std::string peer = AddressText(socket.key.family, socket.key.peer);
  const auto at = std::find(process.peers.begin(), process.peers.end(), peer);
  socket.lane = static_cast<std::uint32_t>(at - process.peers.begin());
  if (at == process.peers.end()) {
    if (process.peers.size() >= client::kMaxLanes) return;
    process.peers.push_back(peer);
    process.rates.push_back(0);
    engine_.OnLaneAppeared(now, {id, socket.lane}, peer);
  }
  Socket& added = process.sockets[found.inode] = socket;
  Cap(process, added, process.rates[socket.lane]);
}

/// Bytes in the kernel's queues stand for demand: whatever the process has not handed over yet cannot be seen.
void Adopter::SampleLanes(Nanoseconds now, ProcessId id, const Process& process) {
  Sockets sockets;
  for (const auto& [inode, socket] : process.sockets) sockets.push_back(&socket);
  const auto queues = Queues(process, sockets);
  if (!queues) return;
  std::vector<LaneSample> samples(process.peers.size());
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const Bytes queued = SockDiag::Sum({&(*queues)[i], 1}).queued;
    if (queued == 0) continue;
    LaneSample& sample = samples[sockets[i]->lane];
    sample.rest += queued;
    ++sample.sockets;
  }
  for (std::uint32_t lane = 0; lane < samples.size(); ++lane) engine_.OnSample(now, {id, lane}, samples[lane]);
}

bool Adopter::Active(ProcessId id, const Process& process) const {
  for (std::uint32_t lane = 0; lane < process.peers.size(); ++lane) {
    const AgentEngine::Lane* known = engine_.FindLane(LaneRef{id, lane});
    if (known != nullptr && known->active()) return true;
  }
  return false;
}

void Adopter::Write(LaneRef lane, const LaneControl& control) {
  const auto found = processes_.find(lane.process);
  if (found == processes_.end() || lane.index >= found->second.rates.size()) return;
  Process& process = found->second;
  process.rates[lane.index] = control.pacing_rate;
  for (auto& [inode, socket] : process.sockets) {
    if (socket.lane == lane.index) Cap(process, socket, control.pacing_rate);
  }
}

/// Puts a cap on one socket, or what was there before back if `rate` is 0. The guardian hears of it first.
void Adopter::Cap(const Process& process, Socket& socket, std::uint64_t rate) {
  if (rate == 0 && !socket.capped) return;
  const std::int64_t pid = process.handle.pid();
  if (rate != 0 && !socket.capped) {
    const Status known = guardian_.Know({pid, process.handle.start_time(), socket.id, socket.original});
    if (!known.ok()) {
      log::Warn("cap_not_set", {{"pid", pid}, {"reason", known.message()}});
      return;
    }
  }
  const auto borrowed = process.handle.Borrow(socket.id);
  if (borrowed && !SetPacingRate(borrowed->get(), rate == 0 ? socket.original : std::min(rate, socket.original)))
    return;
  socket.capped = rate != 0;
  if (rate == 0) guardian_.Forget(pid, socket.id.inode);
}

Result<std::vector<SocketQueue>> Adopter::Queues(LaneRef lane) {
  const auto found = processes_.find(lane.process);
  if (found == processes_.end()) return std::vector<SocketQueue>();
  Sockets sockets;
  for (const auto& [inode, socket] : found->second.sockets) {
    if (socket.lane == lane.index) sockets.push_back(&socket);
  }
  return Queues(found->second, sockets);
}

/// By address where sock_diag reaches, since that leaves the sockets alone; else each is borrowed for the moment.
Result<std::vector<SocketQueue>> Adopter::Queues(const Process& process, const Sockets& sockets) {
  if (process.handle.other_network()) {
    std::vector<SocketQueue> queues;
    for (const Socket* socket : sockets) {
      const auto borrowed = process.handle.Borrow(socket->id);
      queues.push_back(borrowed ? QueueOf(borrowed->get()) : SocketQueue());
    }
    return queues;
  }
  std::vector<SocketKey> keys;
  for (const Socket* socket : sockets) keys.push_back(socket->key);
  return diag_.Query(keys);
}

void Adopter::Release() {
  for (auto& [id, process] : processes_) {
    for (auto& [inode, socket] : process.sockets) Cap(process, socket, 0);
  }
}

}  // namespace weir::agents
