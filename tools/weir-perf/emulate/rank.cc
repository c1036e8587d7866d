#include "tools/weir-perf/emulate/rank.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "transport/clock.h"

namespace weir::tools::emulate {
namespace {

constexpr Nanoseconds kPatience = 60 * kSecond;  // What stands still for so long hangs.
constexpr std::uint64_t kCommId = 0x5765697200000001;

Nanoseconds Now() {
  return transport::SteadyClock().Now();
}

bool log_wanted = false;
int log_rank = 0;

__attribute__((format(printf, 5, 6))) void Log(abi::LogLevel level, unsigned long, const char*, int, const char* format,
                                               ...) {
  if (!log_wanted && level != abi::LogLevel::kWarn) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (log_wanted) std::fprintf(stderr, "rank %d: %s\n", log_rank, text);
}

std::int64_t OpenDescriptors() {
  std::int64_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

std::int64_t Resident_kb() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  file >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

Rank::Rank(const Options& options, int rank, Board* board)
    : options_(options), rank_(rank), board_(*board), tale_(board->tale(rank)) {
  log_wanted = options.list_log;
  log_rank = rank;
}

Status Rank::Called(const char* call, abi::Result result) const {
  if (result == abi::Result::kSuccess) return Status::Ok();
  return Status(StatusCode::kInternal,
                fmt::format("rank {}: {} returned {}", rank_, call, static_cast<std::uint32_t>(result)));
}

Status Rank::OnThread(const std::function<Status()>& work) {
  Status status;
  std::thread thread([&] { status = work(); });
  thread.join();
  return status;
}

Status Rank::Run() {
  auto net = Net::Open(options_.plugin, options_.version);
  if (!net) return net.error();
  net_ = std::move(*net);
  if (Status status = OpenFeed(); !status.ok()) return status;
  for (int cycle = 0; cycle < options_.cycles && !ending_; ++cycle) {
    Status status = RunCycle(static_cast<std::uint32_t>(cycle));
    if (!status.ok()) return status;
    CountLeaks(static_cast<std::uint32_t>(cycle));
  }
  if (options_.report.empty()) return Status::Ok();
  const auto compared = truth_.Compare(fmt::format("{}.{}", options_.report, getpid()));
  if (!compared) return compared.error();
  tale_.sends_attributed = compared->sends_right;
  tale_.coflows = compared->coflows;
  tale_.coflows_whole = compared->coflows_right;
  return Status::Ok();
}

Status Rank::OpenFeed() {
  if (!options_.profile) return Status::Ok();
  auto feed = Feed::Open(net_->library(), options_.profiler);
  // A plugin of somebody else's need not have one.
  if (!feed) return options_.profiler == 0 ? Status::Ok() : feed.error();
  feed_ = std::move(*feed);
  return Status::Ok();
}

Status Rank::BeginComm(std::uint32_t cycle) {
  const std::uint64_t comm_id = kCommId + cycle;
  Status status = Called("init", net_->Init(&context_, comm_id, Log, Feed::Callback));
  if (!status.ok() || feed_ == nullptr) return status;
  truth_.BeginComm(comm_id);
  return Called("profiler init", feed_->Init(comm_id, options_.ranks, rank_));
}

Status Rank::EndComm() {
  Status status = Called("finalize", net_->Finalize(context_));
  if (!status.ok() || feed_ == nullptr) return status;
  return Called("profiler finalize", feed_->Finalize());
}

/// What the application's thread says before it hands the collective to the proxy.
void Rank::AnnounceToFeed(const Shape& shape) {
  send_parents_.assign(senders_.size(), nullptr);
  receive_parents_.assign(receivers_.size(), nullptr);
  const CoflowName name = truth_.Begin(shape.collective);
  if (feed_ == nullptr) return;
  void* const group = feed_->StartGroup();
  if (name.p2p) {
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      if (senders_[i] != nullptr) {
        send_parents_[i] = feed_->StartP2p("Send", shape.count, senders_[i]->peer, group);
        feed_->Stop(send_parents_[i]);
      }
      if (receivers_[i] == nullptr) continue;
      receive_parents_[i] = feed_->StartP2p("Recv", shape.count, receivers_[i]->peer, group);
      feed_->Stop(receive_parents_[i]);
    }
  } else {
    void* const event =
        feed_->StartCollective({name.function, name.algorithm, name.sequence, shape.count, shape.channels}, group);
    send_parents_.assign(senders_.size(), event);
    receive_parents_.assign(receivers_.size(), event);
    feed_->Stop(event);
  }
  feed_->Stop(group);
}

/// What the progress thread says before the first transfer; NCCL does from v11 on, and only what changed.
void Rank::AnnounceToNet(const Shape& shape) {
  abi::NetAttributes attributes{};
  attributes.send = attributes.receive = {shape.ranks - 1, 1, shape.channels, shape.channels};
  attributes.operations = 1u << NameOf(shape.collective).bit;
  attributes.algorithms = 1u << (shape.collective == Collective::kTreeAllReduce ? 0u : 1u);
  attributes.protocols = 1u << 2u;
  if (std::memcmp(&attributes, &attributes_, sizeof attributes) == 0) return;
  attributes_ = attributes;
  net_->SetAttributes(context_, &attributes);
}

/// The first cycle loads and allocates what stays.
void Rank::CountLeaks(std::uint32_t cycle) {
  if (cycle == 0) {
    descriptors_at_first_ = OpenDescriptors();
    memory_at_first_kb_ = Resident_kb();
  }
  tale_.descriptors_more = OpenDescriptors() - descriptors_at_first_;
  tale_.memory_more_kb = Resident_kb() - memory_at_first_kb_;
}

Status Rank::RunCycle(std::uint32_t cycle) {
  provoked_ = false;
  if (Status status = board_.Meet(kPatience); !status.ok()) return status;
  if (Status status = BeginComm(cycle); !status.ok()) return status;
  int devices = 0;
  if (Status status = Called("devices", net_->Devices(&devices)); !status.ok()) return status;
  if (devices < 1) return Status(StatusCode::kNotFound, "the plugin has no device; NCCL would not use it");
  Net::Properties properties;
  if (Status status = Called("getProperties", net_->GetProperties(device_, &properties)); !status.ok()) return status;
  if (options_.group > properties.receives_max) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("receives posted together: found {}, the plugin allows 1 to {}", options_.group,
                              properties.receives_max));
  }
  if (Status status = OnThread([&] { return ConnectAll(cycle); }); !status.ok()) return status;
  if (Status status = board_.Meet(kPatience); !status.ok()) return status;
  Status outcome;
  std::size_t index = 0;
  std::uint32_t seed = cycle * 7919;
  for (const Collective collective : options_.collectives) {
    for (const Bytes size : options_.sizes) {
      outcome = RunCase(index++, ShapeOf(collective, size), seed += 101);
      if (!outcome.ok() || provoked_ || ending_) break;
    }
    if (!outcome.ok() || provoked_ || ending_) break;
  }
  Status closed = OnThread([this] { return CloseAll(); });
  if (!outcome.ok()) return outcome;
  if (!closed.ok()) return closed;
  return EndComm();
}

Shape Rank::ShapeOf(Collective collective, Bytes size) const {
  Shape shape;
  shape.collective = collective;
  shape.ranks = options_.ranks;
  shape.channels = options_.channels;
  shape.count = size / sizeof(std::uint32_t);
  shape.slice_count = options_.slice_bytes / sizeof(std::uint32_t);
  const bool may_group = collective == Collective::kAllToAll || collective == Collective::kSendReceive;
  shape.group = may_group ? static_cast<std::size_t>(options_.group) : 1;
  return shape;
}

/// All connections that some collective needs, made side by side as NCCL does.
Status Rank::ConnectAll(std::uint32_t cycle) {
  const std::size_t ends = static_cast<std::size_t>(options_.ranks) * static_cast<std::size_t>(options_.channels);
  senders_.clear();
  receivers_.clear();
  senders_.resize(ends);
  receivers_.resize(ends);
  const auto prepare = [&](auto* end, int peer, std::size_t channel) {
    if (*end != nullptr) return;
    *end = std::make_unique<typename std::remove_reference_t<decltype(**end)>>();
    (*end)->peer = peer;
    (*end)->channel = static_cast<int>(channel);
    (*end)->slot_bytes = options_.slice_bytes;
    (*end)->feed = feed_.get();
    (*end)->data.resize(kSlots * options_.slice_bytes);
  };
  for (const Collective collective : options_.collectives) {
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(options_.channels); ++channel) {
      for (const Instruction& one : MakePlan(ShapeOf(collective, 0), rank_, static_cast<int>(channel))) {
        if (one.to != kNobody) prepare(&senders_[Index(one.to, channel)], one.to, channel);
        if (one.from == kNobody) continue;
        prepare(&receivers_[Index(one.from, channel)], one.from, channel);
        receiver(one.from, channel)->flushes = options_.flush;
      }
    }
  }
  std::vector<void*> listeners(ends);
  for (std::size_t i = 0; i < ends; ++i) {
    if (receivers_[i] == nullptr) continue;
    if (Status status = Listen(receivers_[i].get(), &listeners[i], cycle); !status.ok()) return status;
  }
  if (Status status = PollConnections(cycle, &listeners); !status.ok()) return status;
  return RegisterAll();
}

Status Rank::Listen(ReceiveEnd* end, void** listener, std::uint32_t cycle) {
  HandleCell& cell = board_.cell(end->peer, rank_, end->channel);
  Status status = Called("listen", net_->Listen(context_, device_, cell.bytes, listener));
  if (!status.ok()) return status;
  if (*listener == nullptr) return Status(StatusCode::kInternal, "listen made no listener");
  cell.cycle.store(cycle + 1);
  return Status::Ok();
}

Status Rank::PollConnections(std::uint32_t cycle, std::vector<void*>* listeners) {
  const Nanoseconds deadline = Now() + kPatience;
  // The handle of each connection, which must stay the same from call to call.
  std::vector<std::array<char, abi::kHandleBytes>> handles(senders_.size());
  std::vector<bool> handle_known(senders_.size());
  bool all = false;
  while (!all) {
    all = true;
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      SendEnd* end = senders_[i].get();
      if (end == nullptr || end->comm != nullptr) continue;
      all = false;
      HandleCell& cell = board_.cell(rank_, end->peer, end->channel);
      if (cell.cycle.load() != cycle + 1) continue;
      if (!handle_known[i]) std::memcpy(handles[i].data(), cell.bytes, abi::kHandleBytes);
      handle_known[i] = true;
      Status status = Called("connect", net_->Connect(context_, device_, handles[i].data(), &end->comm));
      if (!status.ok()) return status;
    }
    for (std::size_t i = 0; i < receivers_.size(); ++i) {
      ReceiveEnd* end = receivers_[i].get();
      if (end == nullptr || end->comm != nullptr) continue;
      all = false;
      if (Status status = Called("accept", net_->Accept((*listeners)[i], &end->comm)); !status.ok()) return status;
      if (end->comm == nullptr) continue;
      if (Status status = Called("closeListen", net_->CloseListen((*listeners)[i])); !status.ok()) return status;
    }
    if (board_.stopped().load() != 0) return Status(StatusCode::kUnavailable, "another rank stopped");
    if (Now() > deadline) {
      return Status(StatusCode::kUnavailable, fmt::format("rank {}: connections were not made within 60 s", rank_));
    }
    if (!all) sched_yield();
  }
  return Status::Ok();
}

Status Rank::RegisterAll() {
  const auto enter = [&](End* end) {
    if (end == nullptr) return Status::Ok();
    return Called("regMr", net_->Register(end->comm, end->data.data(), end->data.size(), &end->memory));
  };
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    if (Status status = enter(senders_[i].get()); !status.ok()) return status;
    if (Status status = enter(receivers_[i].get()); !status.ok()) return status;
  }
  return Status::Ok();
}

Status Rank::CloseAll() {
  const auto close = [&](End* end, auto&& how) {
    if (end == nullptr || end->comm == nullptr) return Status::Ok();
    if (Status status = Called("deregMr", net_->Deregister(end->comm, end->memory)); !status.ok()) return status;
    const Nanoseconds before = Now();
    Status status = Called("close", how(end->comm));
    tale_.close_longest = std::max(tale_.close_longest, Now() - before);
    end->comm = nullptr;
    return status;
  };
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    Status status = close(senders_[i].get(), [&](void* comm) { return net_->CloseSend(comm); });
    if (!status.ok()) return status;
    status = close(receivers_[i].get(), [&](void* comm) { return net_->CloseReceive(comm); });
    if (!status.ok()) return status;
  }
  senders_.clear();
  receivers_.clear();
  return Status::Ok();
}

Status Rank::RunCase(std::size_t index, const Shape& shape, std::uint32_t seed) {
  std::vector<std::uint32_t> buffer(BufferCount(shape));
  // A fault interrupts; until then there is always something to interrupt.
  const int rounds = options_.fault == Fault::kNone ? options_.rounds : 1'000'000;
  for (int round = 0; round < rounds && !provoked_; ++round) {
    const std::uint32_t own_seed = seed + static_cast<std::uint32_t>(round);
    FillInput(shape, rank_, own_seed, buffer);
    if (options_.fault == Fault::kNone) {
      const auto ending = board_.MeetOrEnd(++meetings_, kPatience);
      if (!ending) return ending.error();
      if (*ending) {
        ending_ = true;
        break;
      }
    }
    const Nanoseconds begin = Now();
    if (transfers_began_ == 0) transfers_began_ = begin;
    AnnounceToFeed(shape);
    const std::uint64_t sends_before = tale_.sends;
    const Bytes bytes_before = tale_.bytes_sent;
    if (Status status = OnThread([&] { return Transfer(shape, &buffer); }); !status.ok()) return status;
    if (provoked_) break;
    truth_.End(tale_.sends - sends_before, tale_.bytes_sent - bytes_before);
    tale_.case_time[index] += Now() - begin;
    ++tale_.case_rounds[index];
    const auto checked = CheckOutput(shape, rank_, own_seed, buffer);
    if (!checked) return checked.error();
    tale_.numbers_checked += *checked;
    if (options_.compute > 0) usleep(static_cast<useconds_t>(options_.compute / kMicrosecond));
  }
  transfers_began_ = 0;
  return Status::Ok();
}

void Rank::BeginEnds(const Shape& shape) {
  std::vector<std::uint64_t> sends(senders_.size());
  std::vector<std::uint64_t> receives(receivers_.size());
  plans_.clear();
  at_.assign(static_cast<std::size_t>(shape.channels), 0);
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(shape.channels); ++channel) {
    plans_.push_back(MakePlan(shape, rank_, static_cast<int>(channel)));
    for (const Instruction& one : plans_.back()) {
      if (one.to != kNobody) ++sends[Index(one.to, channel)];
      if (one.from != kNobody) ++receives[Index(one.from, channel)];
    }
  }
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    if (senders_[i] != nullptr) senders_[i]->Begin(sends[i], shape.group, send_parents_[i]);
    if (receivers_[i] != nullptr) receivers_[i]->Begin(receives[i], shape.group, receive_parents_[i]);
  }
}

/// NCCL's progress thread, with the kernels that it feeds.
Status Rank::Transfer(const Shape& shape, std::vector<std::uint32_t>* buffer) {
  AnnounceToNet(shape);
  BeginEnds(shape);
  Nanoseconds moved_at = Now();
  while (true) {
    bool moved = false;
    bool finished = true;
    CallFailure failure;
    for (std::size_t channel = 0; channel < plans_.size(); ++channel) {
      moved |= RunKernel(channel, buffer);
      finished &= at_[channel] == plans_[channel].size();
    }
    for (std::size_t i = 0; i < senders_.size() && failure.call == nullptr; ++i) {
      SendEnd* out = senders_[i].get();
      if (out != nullptr && !out->Finished()) moved |= out->Progress(net_.get(), rank_, &tale_, &failure);
      ReceiveEnd* in = receivers_[i].get();
      if (failure.call == nullptr && in != nullptr && !in->Finished()) {
        moved |= in->Progress(net_.get(), &tale_, &failure);
      }
      finished &= (out == nullptr || out->Finished()) && (in == nullptr || in->Finished());
    }
    if (failure.call != nullptr) return OnFailure(failure);
    if (finished) return Status::Ok();
    if (Status status = ProvokeIfTime(); !status.ok() || provoked_) return status;
    if (moved) {
      moved_at = Now();
      continue;
    }
    if (Now() - moved_at > kPatience) {
      return Status(StatusCode::kInternal,
                    fmt::format("rank {}: nothing moved for 60 s in {}", rank_, CollectiveName(shape.collective)));
    }
    if (options_.idle > 0) {
      usleep(static_cast<useconds_t>(options_.idle / kMicrosecond));
    } else {
      sched_yield();
    }
  }
}

/// Everything that a kernel can do now, in the order of its plan.
bool Rank::RunKernel(std::size_t channel, std::vector<std::uint32_t>* buffer) {
  bool moved = false;
  std::size_t& at = at_[channel];
  while (at < plans_[channel].size() && Apply(plans_[channel][at], channel, buffer)) {
    ++at;
    moved = true;
  }
  return moved;
}

bool Rank::Apply(const Instruction& one, std::size_t channel, std::vector<std::uint32_t>* buffer) {
  ReceiveEnd* in = one.from == kNobody ? nullptr : receiver(one.from, channel);
  SendEnd* out = one.to == kNobody ? nullptr : sender(one.to, channel);
  const std::byte* came = in == nullptr ? nullptr : in->Ready();
  std::byte* going = out == nullptr ? nullptr : out->Free();
  if ((in != nullptr && came == nullptr) || (out != nullptr && going == nullptr)) return false;
  const std::size_t bytes = one.count * sizeof(std::uint32_t);
  if (in != nullptr) {
    std::uint32_t* take = buffer->data() + one.take_at;
    // A size that the plugin got wrong spoils the result, and is found there.
    const std::size_t numbers = std::min(one.count, in->ReadySize() / sizeof(std::uint32_t));
    if (one.add) {
      for (std::size_t i = 0; i < numbers; ++i) {
        std::uint32_t number = 0;
        std::memcpy(&number, came + i * sizeof number, sizeof number);
        take[i] += number;
      }
    } else if (numbers > 0) {
      std::memcpy(take, came, numbers * sizeof(std::uint32_t));
    }
    in->Consume();
  }
  if (out != nullptr) {
    if (bytes > 0) std::memcpy(going, buffer->data() + one.send_at, bytes);
    out->Post(bytes);
  }
  return true;
}

Status Rank::ProvokeIfTime() {
  if (board_.stopped().load() != 0) {
    if (options_.fault == Fault::kNone) return Status(StatusCode::kUnavailable, "another rank stopped");
    provoked_ = true;
    return Status::Ok();
  }
  if (options_.fault == Fault::kNone || Now() - transfers_began_ < options_.fault_after) return Status::Ok();
  if (options_.fault == Fault::kAbort) provoked_ = true;
  if (options_.fault == Fault::kKill && rank_ == options_.ranks - 1) {
    board_.provoked_at().store(Now());
    kill(getpid(), SIGKILL);
  }
  return Status::Ok();
}

/// A failure is what is wanted after a fault, and the end otherwise.
Status Rank::OnFailure(const CallFailure& failure) {
  const Nanoseconds provoked_at = board_.provoked_at().load();
  const bool meant = options_.fault == Fault::kAbort || (options_.fault == Fault::kKill && provoked_at != 0);
  if (!meant) {
    // Only the first has something to say: the others are about to see its connections closed.
    if (board_.stopped().exchange(1) != 0) return Status(StatusCode::kUnavailable, "another rank stopped");
    return Called(failure.call, failure.code);
  }
  if (tale_.errors_seen++ == 0) {
    tale_.error_after = provoked_at == 0 ? 0 : Now() - provoked_at;
    tale_.error_code = static_cast<std::uint32_t>(failure.code);
  }
  if (options_.fault == Fault::kKill) board_.stopped().store(1);
  provoked_ = true;
  return Status::Ok();
}

}  // namespace weir::tools::emulate
