#include "tools/weir-perf/ends.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <sstream>
#include <thread>

#include "tools/weir-perf/coflows.h"
#include "tools/weir-perf/soak.h"
#include "transport/clock.h"

namespace weir::tools {
namespace {

using transport::Outcome;

constexpr Nanoseconds kConnectWithin = 30 * kSecond;
constexpr Bytes kReceiveMemory = 64u << 20;  ///< Of all receives that are posted at once, unless one needs more.
constexpr std::size_t kReceivesPosted = 8;

/// Takes the channel that comes, and makes the one that goes.
Result<Channels> Join(transport::Listener* listener, transport::Connector* connector) {
  Channels channels;
  const Nanoseconds deadline = transport::SteadyClock().Now() + kConnectWithin;
  while (channels.sender == nullptr || channels.receiver == nullptr) {
    if (channels.sender == nullptr) {
      auto sender = connector->Poll();
      if (!sender) return tl::unexpected(sender.error());
      channels.sender = std::move(*sender);
    }
    if (channels.receiver == nullptr) {
      auto receiver = listener->Accept();
      if (!receiver) return tl::unexpected(receiver.error());
      channels.receiver = std::move(*receiver);
    }
    if (transport::SteadyClock().Now() > deadline) {
      return Error(StatusCode::kUnavailable,
                   "the other end did not connect back within 30 s; is its address reachable?");
    }
    std::this_thread::yield();
  }
  return channels;
}

/// Receives until a message of nothing comes; the memory is reused and never looked at. `cpu_from` is what the thread
/// had used when all of it had been touched.
Status Drain(transport::Receiver* receiver, Bytes size, double* cpu_from) {
  const std::size_t posted_max = std::clamp<std::size_t>(kReceiveMemory / std::max<Bytes>(size, 1), 1, kReceivesPosted);
  std::vector<std::vector<std::byte>> rooms(posted_max, std::vector<std::byte>(std::max<Bytes>(size, 1)));
  std::vector<transport::MemoryId> memory;
  for (const auto& room : rooms) memory.push_back(Known(receiver, room));
  std::deque<transport::Request*> posted;
  std::size_t next = 0;
  std::uint64_t received = 0;
  while (true) {
    while (posted.size() < posted_max) {
      auto& room = rooms[next % posted_max];
      const transport::Slot slot{room.data(), room.size(), 0, memory[next++ % posted_max]};
      transport::Request* request = nullptr;
      if (receiver->Irecv(std::span(&slot, 1), &request) != Outcome::kDone) return receiver->failure();
      posted.push_back(request);
    }
    Bytes got = 0;
    const Outcome outcome = receiver->Test(posted.front(), std::span(&got, 1));
    if (outcome == Outcome::kFailed) return receiver->failure();
    if (outcome == Outcome::kAgain) {
      std::this_thread::yield();
      continue;
    }
    posted.pop_front();
    if (got == 0) return Status::Ok();
    if (++received == posted_max) *cpu_from = ThreadCpuSeconds();
  }
}

const char* KindName(TestKind kind) {
  switch (kind) {
    case TestKind::kBandwidth:
      return "bandwidth";
    case TestKind::kLatency:
      return "latency";
    case TestKind::kSoak:
      return "soak";
    case TestKind::kCoflows:
      break;
  }
  return "coflows";
}

/// Answers each message with one like it.
Status Echo(const Plan& plan, Channels* channels) {
  Ahead ahead(channels->receiver.get(), plan.size);
  const std::vector<std::byte> data(plan.size);
  const transport::MemoryId from = Known(channels->sender.get(), data);
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    Bytes size = 0;
    if (Status status = ahead.Post(); !status.ok()) return status;
    if (Status status = ahead.Take(&size); !status.ok()) return status;
    if (size == 0 && plan.size > 0) break;  // The asker's time is over.
    if (Status status = SendOne(channels->sender.get(), data, from); !status.ok()) return status;
  }
  return Status::Ok();
}

/// `cpu_from`: what the thread had used when what is measured began.
Status Answer(const Plan& plan, Rendezvous* rendezvous, transport::Transport* transport, Channels* channels,
              double* cpu_from) {
  if (plan.kind == TestKind::kCoflows) {
    return CountArrivals(plan.count, plan.size, rendezvous, transport, std::move(channels->receiver),
                         channels->sender.get());
  }
  if (plan.kind == TestKind::kSoak) {
    SoakResult seen;
    return Soak(plan, false, channels, &seen);
  }
  if (plan.kind == TestKind::kBandwidth) {
    if (Status status = Drain(channels->receiver.get(), plan.size, cpu_from); !status.ok()) return status;
    return SendOne(channels->sender.get(), {});
  }
  return Echo(plan, channels);
}

/// One test from its line to its result. Errors end this test only.
Status ServeOne(const std::string& line, Rendezvous* rendezvous, transport::Transport* transport) {
  const std::size_t blank = line.rfind(' ');
  const auto plan = PlanFromText(line.substr(0, std::min(blank, line.size())));
  if (!plan) return plan.error();
  const auto back = HandleFromText(blank == std::string::npos ? "" : line.substr(blank + 1));
  if (!back) return back.error();
  auto listener = transport->Listen(0, 1);
  if (!listener) return listener.error();
  const ChangingDirectives directives(plan->count + std::uint64_t{1});
  transport::Pacer pacer;
  transport::Lane lane(&pacer, &directives);
  auto connector = transport->Connect(0, *back, plan->kind == TestKind::kSoak ? &lane : nullptr);
  if (!connector) return connector.error();
  if (Status status = rendezvous->Send("ok " + HandleToText((*listener)->handle())); !status.ok()) return status;
  auto channels = Join(listener->get(), connector->get());
  if (!channels) return channels.error();
  double cpu_from = ThreadCpuSeconds();
  if (Status status = Answer(*plan, rendezvous, transport, &*channels, &cpu_from); !status.ok()) return status;
  return rendezvous->Send(fmt::format("done {:.6f}", ThreadCpuSeconds() - cpu_from));
}

}  // namespace

std::string PlanToText(const Plan& plan) {
  return fmt::format("{} {} {}", KindName(plan.kind), plan.size, plan.count);
}

Result<Plan> PlanFromText(const std::string& text) {
  std::istringstream in(text);
  std::string kind;
  Plan plan;
  in >> kind >> plan.size >> plan.count;
  for (const TestKind known : {TestKind::kBandwidth, TestKind::kLatency, TestKind::kSoak, TestKind::kCoflows}) {
    if (!in || kind != KindName(known) || plan.count > kCountMax) continue;
    if (plan.size > (known == TestKind::kSoak ? kTotalMax : kSizeMax)) continue;
    if (known == TestKind::kCoflows && (plan.count < 1 || plan.count > kCoflowsMax)) continue;
    plan.kind = known;
    return plan;
  }
  return Error(
      StatusCode::kProtocol,
      fmt::format("test: found \"{}\", allowed: bandwidth, latency, soak or coflows, with a size and a count in range",
                  text.substr(0, 80)));
}

Result<Channels> AskFor(const Plan& plan, Rendezvous* rendezvous, transport::Transport* transport,
                        transport::Lane* lane) {
  auto listener = transport->Listen(0, 1);
  if (!listener) return tl::unexpected(listener.error());
  const std::string line = PlanToText(plan) + " " + HandleToText((*listener)->handle());
  if (Status status = rendezvous->Send(line); !status.ok()) return tl::unexpected(status);
  const auto answer = rendezvous->Receive();
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->starts_with("ok ")) return Error(StatusCode::kUnavailable, "the other end says: " + *answer);
  const auto handle = HandleFromText(answer->substr(3));
  if (!handle) return tl::unexpected(handle.error());
  auto connector = transport->Connect(0, *handle, lane);
  if (!connector) return tl::unexpected(connector.error());
  return Join(listener->get(), connector->get());
}

Status Serve(Rendezvous* rendezvous, transport::Transport* transport) {
  while (true) {
    const auto line = rendezvous->Receive();
    if (!line || *line == "bye") return line ? Status::Ok() : line.error();
    if (*line == "clock") {
      const Status told = rendezvous->Send(fmt::format("clock {}", transport::SteadyClock().Now()));
      if (!told.ok()) return told;
      continue;
    }
    if (Status status = ServeOne(*line, rendezvous, transport); !status.ok()) {
      if (Status told = rendezvous->Send("error " + status.message()); !told.ok()) return told;
    }
  }
}

Result<double> EndOfTest(Rendezvous* rendezvous) {
  const auto line = rendezvous->Receive();
  if (!line) return tl::unexpected(line.error());
  std::istringstream in(*line);
  std::string word;
  double seconds = 0;
  if (!(in >> word >> seconds) || word != "done") {
    return Error(StatusCode::kUnavailable, "the other end says: " + *line);
  }
  return seconds;
}

transport::MemoryId Known(transport::Channel* channel, const std::vector<std::byte>& memory) {
  if (memory.empty()) return {};
  // Backends take memory to write to; that a sender's is only read is its own affair.
  const auto known =
      channel->Register(const_cast<std::byte*>(memory.data()), memory.size(), transport::MemoryKind::kHost);
  return known ? *known : transport::MemoryId{};
}

Status SendOne(transport::Sender* sender, const std::vector<std::byte>& data, transport::MemoryId memory) {
  const transport::Part part{data.data(), data.size(), memory};
  transport::Request* request = nullptr;
  Outcome outcome = sender->Isend(std::span(&part, 1), 0, &request);
  while (outcome == Outcome::kAgain) outcome = sender->Isend(std::span(&part, 1), 0, &request);
  if (outcome == Outcome::kDone) {
    outcome = sender->Test(request, {});
    while (outcome == Outcome::kAgain) {
      std::this_thread::yield();
      outcome = sender->Test(request, {});
    }
  }
  return outcome == Outcome::kDone ? Status::Ok() : sender->failure();
}

Status ReceiveOne(transport::Receiver* receiver, std::vector<std::byte>* room, Bytes* size,
                  transport::MemoryId memory) {
  const transport::Slot slot{room->data(), room->size(), 0, memory};
  transport::Request* request = nullptr;
  Outcome outcome = receiver->Irecv(std::span(&slot, 1), &request);
  if (outcome != Outcome::kDone) return receiver->failure();
  outcome = receiver->Test(request, std::span(size, 1));
  while (outcome == Outcome::kAgain) {
    std::this_thread::yield();
    outcome = receiver->Test(request, std::span(size, 1));
  }
  return outcome == Outcome::kDone ? Status::Ok() : receiver->failure();
}

Ahead::Ahead(transport::Receiver* receiver, Bytes size) : receiver_(*receiver) {
  for (std::size_t i = 0; i < kPosted; ++i) {
    rooms_[i].resize(std::max<Bytes>(size, 1));
    memory_[i] = Known(receiver, rooms_[i]);
  }
}

Status Ahead::Post() {
  for (; posted_ < taken_ + kPosted; ++posted_) {
    const std::size_t i = posted_ % kPosted;
    const transport::Slot slot{rooms_[i].data(), rooms_[i].size(), 0, memory_[i]};
    Outcome outcome = receiver_.Irecv(std::span(&slot, 1), &requests_[i]);
    while (outcome == Outcome::kAgain) outcome = receiver_.Irecv(std::span(&slot, 1), &requests_[i]);
    if (outcome == Outcome::kFailed) return receiver_.failure();
  }
  return Status::Ok();
}

Status Ahead::Take(Bytes* size) {
  transport::Request* request = requests_[taken_ % kPosted];
  Outcome outcome = receiver_.Test(request, std::span(size, 1));
  while (outcome == Outcome::kAgain) {
    std::this_thread::yield();
    outcome = receiver_.Test(request, std::span(size, 1));
  }
  taken_++;
  return outcome == Outcome::kDone ? Status::Ok() : receiver_.failure();
}

double ThreadCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace weir::tools
