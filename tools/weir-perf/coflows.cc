#include "tools/weir-perf/coflows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>

#include "tools/weir-perf/ends.h"
#include "tools/weir-perf/report.h"
#include "transport/clock.h"
#include "transport/codec.h"
#include "transport/directive_source.h"
#include "transport/pacer/pacer.h"

namespace weir::tools {
namespace {

using transport::Outcome;
using transport::SteadyClock;

/// Receives that are posted on each channel, and sends under way on one with a cap: 64 ms of it. While an end is not
/// let run, the other goes on with what was posted before; with less this would measure how its host shares its cores.
constexpr std::size_t kPosted = 128;
/// Of one without a cap, so that what it has left when its time is over is little.
constexpr std::size_t kPostedUncapped = 16;
/// Then the other coflows of the thread have their turn, however much the network would still take: one of a higher
/// level may have begun.
constexpr Nanoseconds kTurn = 100 * kMicrosecond;
constexpr Nanoseconds kChannelWithin = 30 * kSecond;
constexpr std::size_t kStepsMax = static_cast<std::size_t>(kRunMax_s * 1000) + 30'000;
constexpr std::size_t kHeaderBytes = 16;

/// A directive that its owner changes, on the thread of its lane.
class Set final : public transport::DirectiveSource {
 public:
  explicit Set(const CoflowPlan& plan) {
    directive_.level = plan.level;
    directive_.rate = BitsPerSecond(plan.cap_bits);
  }
  void Cap(double bits) {
    directive_.rate = BitsPerSecond(bits);
    version_++;
  }
  std::uint64_t Version() const noexcept override { return version_; }
  transport::LaneDirective Read() const noexcept override { return directive_; }

 private:
  std::uint64_t version_ = 1;
  transport::LaneDirective directive_;
};

/// The sending end of one coflow.
class Source {
 public:
  Source(const CoflowPlan& plan, Bytes message, transport::Pacer* pacer)
      : plan_(plan), set_(plan), lane_(pacer, &set_), message_(message, std::byte{0x5a}) {}

  transport::Lane* lane() { return &lane_; }
  void Take(std::unique_ptr<transport::Sender> sender) {
    sender_ = std::move(sender);
    memory_ = Known(sender_.get(), message_);
  }
  transport::Sender* sender() { return sender_.get(); }
  const std::vector<double>& ended_s() const { return ended_s_; }
  bool idle() const { return under_way_.empty(); }

  /// Errors: why the channel failed.
  Status Step(double now_s) {
    if (plan_.change_s > 0 && !changed_ && now_s >= plan_.change_s) {
      changed_ = true;
      set_.Cap(plan_.changed_cap_bits);
    }
    if (span_ < plan_.spans.size() && now_s >= plan_.spans[span_].until_s && under_way_.empty()) {
      ended_s_.push_back(now_s);
      span_++;
    }
    const bool active =
        span_ < plan_.spans.size() && now_s >= plan_.spans[span_].from_s && now_s < plan_.spans[span_].until_s;
    // Until something is left over: whoever is saturated always has more than the network takes.
    const Nanoseconds until = SteadyClock().Now() + kTurn;
    for (bool more = true; more && SteadyClock().Now() < until;) {
      if (Status status = Collect(); !status.ok()) return status;
      std::size_t posted = 0;
      if (Status status = active ? Post(until, &posted) : Status::Ok(); !status.ok()) return status;
      more = posted > 0;
    }
    return Status::Ok();
  }

 private:
  /// Takes away what is done.
  Status Collect() {
    while (!under_way_.empty()) {
      const Outcome outcome = sender_->Test(under_way_.front(), {});
      if (outcome == Outcome::kFailed) return sender_->failure();
      if (outcome == Outcome::kAgain) break;
      under_way_.pop_front();
    }
    return Status::Ok();
  }

  Status Post(Nanoseconds until, std::size_t* posted) {
    const std::size_t most = plan_.cap_bits > 0 ? kPosted : kPostedUncapped;
    while (under_way_.size() < most && SteadyClock().Now() < until) {
      const transport::Part part{message_.data(), message_.size(), memory_};
      transport::Request* request = nullptr;
      const Outcome outcome = sender_->Isend(std::span(&part, 1), 0, &request);
      if (outcome == Outcome::kFailed) return sender_->failure();
      if (outcome == Outcome::kAgain) break;
      under_way_.push_back(request);
      ++*posted;
    }
    return Status::Ok();
  }

  CoflowPlan plan_;
  Set set_;
  transport::Lane lane_;
  std::vector<std::byte> message_;
  transport::MemoryId memory_;
  std::unique_ptr<transport::Sender> sender_;  ///< After its lane, which outlives it.
  std::deque<transport::Request*> under_way_;
  std::size_t span_ = 0;
  std::vector<double> ended_s_;
  bool changed_ = false;
};

/// The receiving end of one coflow.
class Sink {
 public:
  Sink(std::unique_ptr<transport::Receiver> receiver, Bytes message)
      : receiver_(std::move(receiver)), message_(std::max<Bytes>(message, 1)), rooms_(kPosted * message_) {
    memory_ = Known(receiver_.get(), rooms_);
  }

  bool ended() const { return ended_; }

  /// The bytes of a message that came, 0 when none did. Errors: why the channel failed.
  Result<Bytes> Step() {
    while (posted_.size() < kPosted) {
      const transport::Slot slot{rooms_.data() + next_ % kPosted * message_, message_, 0, memory_};
      transport::Request* request = nullptr;
      const Outcome outcome = receiver_->Irecv(std::span(&slot, 1), &request);
      if (outcome == Outcome::kFailed) return tl::unexpected(receiver_->failure());
      if (outcome == Outcome::kAgain) break;
      posted_.push_back(request);
      next_++;
    }
    Bytes got = 0;
    const Outcome outcome = receiver_->Test(posted_.front(), std::span(&got, 1));
    if (outcome == Outcome::kFailed) return tl::unexpected(receiver_->failure());
    if (outcome == Outcome::kAgain) return 0;
    posted_.pop_front();
    ended_ = got == 0;
    return got;
  }

 private:
  std::unique_ptr<transport::Receiver> receiver_;
  Bytes message_;
  std::vector<std::byte> rooms_;
  transport::MemoryId memory_;
  std::deque<transport::Request*> posted_;
  std::size_t next_ = 0;
  bool ended_ = false;
};

/// Notices when its thread was not let run between two calls.
class Absence {
 public:
  explicit Absence(std::size_t steps) : steps_(steps, 0) {}
  void Call(Nanoseconds begin, Nanoseconds now) {
    const Nanoseconds gap = now - last_;
    const auto step = static_cast<std::size_t>((now - begin) / kArrivalStep);
    if (last_ != 0 && gap > kAwayMin && step < steps_.size()) steps_[step] = std::max(steps_[step], gap);
    last_ = now;
  }
  const std::vector<Nanoseconds>& steps() const { return steps_; }

 private:
  Nanoseconds last_ = 0;
  std::vector<Nanoseconds> steps_;
};

/// How far the other end's clock is ahead of ours, to half of a round trip.
Result<Nanoseconds> ClockAhead(Rendezvous* rendezvous) {
  Nanoseconds ahead = 0;
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for (int i = 0; i < 8; ++i) {
    const Nanoseconds asked = SteadyClock().Now();
    if (Status status = rendezvous->Send("clock"); !status.ok()) return tl::unexpected(status);
    const auto line = rendezvous->Receive();
    if (!line) return tl::unexpected(line.error());
    const Nanoseconds round_trip = SteadyClock().Now() - asked;
    std::istringstream in(*line);
    std::string word;
    Nanoseconds theirs = 0;
    if (!(in >> word >> theirs) || word != "clock") {
      return Error(StatusCode::kUnavailable, "the other end says: " + *line + "; run the same weir-perf on both");
    }
    if (round_trip < best) {
      best = round_trip;
      ahead = theirs - (asked + round_trip / 2);
    }
  }
  return ahead;
}

Status OpenAnother(Rendezvous* rendezvous, transport::Transport* transport, Source* source) {
  if (Status status = rendezvous->Send("more"); !status.ok()) return status;
  const auto line = rendezvous->Receive();
  if (!line) return line.error();
  if (!line->starts_with("ok ")) return Status(StatusCode::kUnavailable, "the other end says: " + *line);
  const auto handle = HandleFromText(line->substr(3));
  if (!handle) return handle.error();
  auto connector = transport->Connect(0, *handle, source->lane());
  if (!connector) return connector.error();
  while (true) {  // The connector itself gives up.
    auto sender = (*connector)->Poll();
    if (!sender) return sender.error();
    if (*sender != nullptr) {
      source->Take(std::move(*sender));
      return Status::Ok();
    }
    std::this_thread::yield();
  }
}

Result<std::unique_ptr<transport::Receiver>> AcceptAnother(Rendezvous* rendezvous, transport::Transport* transport) {
  const auto line = rendezvous->Receive();
  if (!line) return tl::unexpected(line.error());
  if (*line != "more") return Error(StatusCode::kProtocol, "expected \"more\", found \"" + line->substr(0, 80) + '"');
  auto listener = transport->Listen(0, 1);
  if (!listener) return tl::unexpected(listener.error());
  if (Status status = rendezvous->Send("ok " + HandleToText((*listener)->handle())); !status.ok()) {
    return tl::unexpected(status);
  }
  const Nanoseconds deadline = SteadyClock().Now() + kChannelWithin;
  while (SteadyClock().Now() < deadline) {
    auto receiver = (*listener)->Accept();
    if (!receiver || *receiver != nullptr) return receiver;
    std::this_thread::yield();
  }
  return Error(StatusCode::kUnavailable, "the other end did not connect within 30 s");
}

/// Counts begin at `from` on the other end's clock; the header says when theirs do.
Result<Arrivals> Decode(std::span<const std::byte> message, std::size_t coflows, Nanoseconds from, std::size_t steps) {
  Arrivals arrivals;
  arrivals.bytes.assign(coflows, std::vector<Bytes>(steps, 0));
  arrivals.away.assign(steps, 0);
  if (message.size() < kHeaderBytes) return Error(StatusCode::kProtocol, "the counts of the other end are cut short");
  transport::Reader in(message.data());
  const auto begin = static_cast<Nanoseconds>(in.Get<std::uint64_t>());
  const auto counted = in.Get<std::uint64_t>();
  if (counted > kStepsMax || message.size() != kHeaderBytes + counted * (coflows + 1) * 8) {
    return Error(StatusCode::kProtocol, "the counts of the other end have another length than they say");
  }
  for (std::size_t c = 0; c <= coflows; ++c) {
    for (std::size_t i = 0; i < counted; ++i) {
      const auto value = in.Get<std::uint64_t>();
      const Nanoseconds at = begin + static_cast<Nanoseconds>(i) * kArrivalStep - from;
      const auto step = static_cast<std::size_t>(std::max<Nanoseconds>(at, 0) / kArrivalStep);
      if (step >= steps) continue;
      if (c < coflows) {
        arrivals.bytes[c][step] += value;
      } else {
        arrivals.away[step] = std::max(arrivals.away[step], static_cast<Nanoseconds>(value));
      }
    }
  }
  return arrivals;
}

Status Send(const CoflowsPlan& plan, std::vector<std::unique_ptr<Source>>* sources, Nanoseconds begin,
            Absence* absence) {
  bool over = false;
  while (!over) {
    over = true;
    absence->Call(begin, SteadyClock().Now());
    for (const auto& source : *sources) {
      const double now_s = ToSeconds(SteadyClock().Now() - begin);
      if (Status status = source->Step(now_s); !status.ok()) return status;
      over = over && now_s >= plan.seconds && source->idle();
    }
    std::this_thread::yield();
  }
  for (const auto& source : *sources) {
    if (Status status = SendOne(source->sender(), {}); !status.ok()) return status;
  }
  return Status::Ok();
}

}  // namespace

double Arrivals::Between(std::size_t first, std::size_t last, Span span) const {
  const double step_s = ToSeconds(kArrivalStep);
  double sum = 0;
  for (std::size_t c = first; c < last; ++c) {
    const auto begin = static_cast<std::size_t>(std::max(0.0, span.from_s / step_s));
    for (std::size_t i = begin; i < bytes[c].size() && static_cast<double>(i) * step_s < span.until_s; ++i) {
      const double low = std::max(span.from_s, static_cast<double>(i) * step_s);
      const double high = std::min(span.until_s, static_cast<double>(i + 1) * step_s);
      sum += static_cast<double>(bytes[c][i]) * (high - low) / step_s;
    }
  }
  return sum;
}

Nanoseconds Arrivals::LongestAway(Span span) const {
  Nanoseconds longest = 0;
  for (std::size_t i = 0; i < away.size(); ++i) {
    const double at = static_cast<double>(i) * ToSeconds(kArrivalStep);
    if (at >= span.from_s && at < span.until_s) longest = std::max(longest, away[i]);
  }
  return longest;
}

Result<Arrivals> RunCoflows(const CoflowsPlan& plan, Rendezvous* rendezvous, transport::Transport* transport) {
  const auto ahead = ClockAhead(rendezvous);
  if (!ahead) return tl::unexpected(ahead.error());
  transport::Pacer pacer;
  std::vector<std::unique_ptr<Source>> sources;
  for (const CoflowPlan& coflow : plan.coflows) {
    sources.push_back(std::make_unique<Source>(coflow, plan.message, &pacer));
  }
  const Plan first{TestKind::kCoflows, plan.message, static_cast<std::uint32_t>(sources.size())};
  auto channels = AskFor(first, rendezvous, transport, sources.front()->lane());
  if (!channels) return tl::unexpected(channels.error());
  sources.front()->Take(std::move(channels->sender));
  for (std::size_t i = 1; i < sources.size(); ++i) {
    if (Status status = OpenAnother(rendezvous, transport, sources[i].get()); !status.ok()) {
      return tl::unexpected(status);
    }
  }
  const Nanoseconds begin = SteadyClock().Now();
  const auto steps = static_cast<std::size_t>(plan.seconds / ToSeconds(kArrivalStep));
  Absence absence(steps);
  if (Status status = Send(plan, &sources, begin, &absence); !status.ok()) return tl::unexpected(status);
  std::vector<std::byte> message(kHeaderBytes + kStepsMax * (sources.size() + 1) * 8);
  Bytes size = 0;
  if (Status status = ReceiveOne(channels->receiver.get(), &message, &size); !status.ok())
    return tl::unexpected(status);
  if (const auto end = EndOfTest(rendezvous); !end) return tl::unexpected(end.error());
  auto arrivals = Decode(std::span(message).first(size), sources.size(), begin + *ahead, steps);
  if (!arrivals) return arrivals;
  for (std::size_t i = 0; i < steps; ++i) arrivals->away[i] = std::max(arrivals->away[i], absence.steps()[i]);
  for (const auto& source : sources) arrivals->ended_s.push_back(source->ended_s());
  return arrivals;
}

Status CountArrivals(std::uint32_t coflows, Bytes message, Rendezvous* rendezvous, transport::Transport* transport,
                     std::unique_ptr<transport::Receiver> first, transport::Sender* back) {
  std::vector<Sink> sinks;
  sinks.emplace_back(std::move(first), message);
  while (sinks.size() < coflows) {
    auto receiver = AcceptAnother(rendezvous, transport);
    if (!receiver) return receiver.error();
    sinks.emplace_back(std::move(*receiver), message);
  }
  std::vector<std::vector<Bytes>> counts(coflows, std::vector<Bytes>(kStepsMax, 0));
  const Nanoseconds begin = SteadyClock().Now();
  Absence absence(kStepsMax);
  std::size_t steps = 0;
  for (std::size_t open = sinks.size(); open > 0;) {
    bool idle = true;
    absence.Call(begin, SteadyClock().Now());
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      if (sinks[i].ended()) continue;
      const auto got = sinks[i].Step();
      if (!got) return got.error();
      const auto step = static_cast<std::size_t>((SteadyClock().Now() - begin) / kArrivalStep);
      if (*got > 0 && step < kStepsMax) {
        counts[i][step] += *got;
        steps = std::max(steps, step + 1);
        idle = false;
      }
      open -= sinks[i].ended() ? 1u : 0u;
    }
    if (idle) std::this_thread::yield();
  }
  std::vector<std::byte> answer(kHeaderBytes + steps * (coflows + std::size_t{1}) * 8);
  transport::Writer out(answer.data());
  out.Put(static_cast<std::uint64_t>(begin));
  out.Put(static_cast<std::uint64_t>(steps));
  for (const auto& counted : counts) {
    for (std::size_t i = 0; i < steps; ++i) out.Put(counted[i]);
  }
  for (std::size_t i = 0; i < steps; ++i) out.Put(static_cast<std::uint64_t>(absence.steps()[i]));
  return SendOne(back, answer);
}

namespace {

/// "0.5-1" or "0.5-".
bool ParseSpan(std::string_view text, double seconds, Span* span) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  const auto number = [](std::string_view digits, double* value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    return error == std::errc() && end == digits.data() + digits.size() && std::isfinite(*value);
  };
  *span = {0, seconds};
  if (!number(text.substr(0, dash), &span->from_s)) return false;
  if (dash + 1 < text.size() && !number(text.substr(dash + 1), &span->until_s)) return false;
  return span->from_s >= 0 && span->from_s < span->until_s && span->until_s <= seconds;
}

bool ParseEntry(std::string_view text, double seconds, CoflowEntry* entry) {
  entry->text = std::string(text);
  entry->plan.spans = {{0, seconds}};
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const auto rates = ParseRates(text.substr(slash + 1));
    if (!rates || rates->size() != 1) return false;
    entry->plan.cap_bits = rates->front();
    text = text.substr(0, slash);
  }
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    if (!ParseSpan(text.substr(at + 1), seconds, &entry->plan.spans.front())) return false;
    text = text.substr(0, at);
  }
  const auto whole = [](std::string_view digits, std::uint32_t least, std::uint32_t most, auto* value) {
    std::uint32_t parsed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
    *value = static_cast<std::remove_pointer_t<decltype(value)>>(parsed);
    return error == std::errc() && end == digits.data() + digits.size() && parsed >= least && parsed <= most;
  };
  if (const std::size_t times = text.find('x'); times != std::string_view::npos) {
    if (!whole(text.substr(0, times), 1, kCoflowsMax, &entry->count)) return false;
    text = text.substr(times + 1);
  }
  return whole(text, 0, kQueueLevels - 1, &entry->plan.level);
}

}  // namespace

Result<std::vector<CoflowEntry>> ParseCoflows(std::string_view text, double seconds) {
  std::vector<CoflowEntry> entries;
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    CoflowEntry entry;
    if (!ParseEntry(text.substr(0, end), seconds, &entry)) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("found \"{}\", allowed: [COUNTx]LEVEL[@FROM-[UNTIL]][/CAP] with levels 0 to {}, times "
                               "within {} s and caps from 100K on, as in 8x7,0@0.5-1/2G",
                               text.substr(0, end), kQueueLevels - 1, seconds));
    }
    count += entry.count;
    entries.push_back(std::move(entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (count >= 1 && count <= kCoflowsMax) return entries;
  return Error(StatusCode::kInvalidArgument, fmt::format("found {} coflows, allowed: 1 to {}", count, kCoflowsMax));
}

}  // namespace weir::tools
