#include "coflow/traces/terra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "coflow/traces/flow_list_readers.h"
#include "coflow/traces/line_cursor.h"

namespace weir::traces {
namespace {

constexpr std::uint64_t kStagesMax = 4'096;  ///< Of a job.
constexpr std::uint64_t kShufflesMax = 65'536;
constexpr std::size_t kPairsMax = kFlowsPerCoflowMax;  ///< Of sites, summed over the shuffles of a job.
constexpr std::uint64_t kTasksMax = 1'048'576;
constexpr double kSecondsMax = static_cast<double>(kTimeMax / kSecond);

/// Tasks of one stage by site, ascending.
struct Stage {
  std::map<std::uint32_t, double> tasks;
  double count = 0;
};

/// All that is shuffled into one stage.
struct Input {
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> bytes;  ///< By source and destination site.
  std::vector<std::size_t> from;                                    ///< Stages.
  Nanoseconds deadline = 0;
};

class TerraParser {
 public:
  TerraParser(std::istream* in, const std::string& origin) : cursor_(in, origin) {}

  Status Run() {
    while (NextLine()) {
      if (Status status = ReadJob(); !status.ok()) {
        return status;
      }
    }
    if (cursor_.TooLong()) {
      return cursor_.Complain(fmt::format("the line is longer than {} bytes", kLineBytesMax));
    }
    return sites_.empty() ? cursor_.Complain("the file ends before the first job") : Status::Ok();
  }

  std::vector<TraceCoflow> TakeCoflows() { return std::move(coflows_); }
  std::uint32_t sites() const { return static_cast<std::uint32_t>(sites_.size()); }

 private:
  /// The next line that is no comment.
  bool NextLine() {
    while (cursor_.NextLine()) {
      if (cursor_.line()[cursor_.line().find_first_not_of(" \t")] != '#') {
        return true;
      }
    }
    return false;
  }

  Status NextLineOf(std::string_view what) {
    return NextLine()
               ? Status::Ok()
               : cursor_.Complain(fmt::format("the file ends inside a job, where {} is due; it is cut short", what));
  }

  Status EndOfLine() {
    return cursor_.AtEnd() ? Status::Ok()
                           : cursor_.ComplainField("after the last field", cursor_.Field(), "the end of the line");
  }

  Status ReadJob() {
    const auto stages = cursor_.Integer("stages", 1, kStagesMax);
    if (!stages) {
      return stages.error();
    }
    const auto job = cursor_.Integer("job id", 0, std::numeric_limits<std::uint64_t>::max() - 1);
    if (!job) {
      return job.error();
    }
    const auto arrival = cursor_.Integer("arrival in s", 0, static_cast<std::uint64_t>(kSecondsMax));
    if (!arrival) {
      return arrival.error();
    }
    if (Status status = EndOfLine(); !status.ok()) {
      return status;
    }
    stages_.assign(*stages, Stage());
    inputs_.assign(*stages, Input());
    pairs_ = 0;
    stage_of_name_.clear();
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (Status status = ReadStage(i); !status.ok()) {
        return status;
      }
    }
    if (Status status = ReadShuffles(); !status.ok()) {
      return status;
    }
    return AddCoflows(*job, static_cast<Nanoseconds>(*arrival) * kSecond);
  }

  Status ReadStage(std::size_t stage) {
    if (Status status = NextLineOf("a stage"); !status.ok()) {
      return status;
    }
    const std::string name(cursor_.Field());
    if (!stage_of_name_.emplace(name, stage).second) {
      return cursor_.ComplainField("stage", name, "a name that no other stage of the job has");
    }
    const auto tasks = cursor_.Integer("tasks", 1, kTasksMax);
    if (!tasks) {
      return tasks.error();
    }
    for (std::uint64_t i = 0; i < *tasks; ++i) {
      const std::string_view site = cursor_.Field();
      if (site.empty()) {
        return cursor_.ComplainField("site", site, fmt::format("a site for each of the {} tasks", *tasks));
      }
      const auto known = sites_.emplace(site, static_cast<std::uint32_t>(sites_.size())).first;
      if (sites_.size() > kPortsMax) {
        return cursor_.Complain(fmt::format("more than {} sites", kPortsMax));
      }
      ++stages_[stage].tasks[known->second];
      ++stages_[stage].count;
    }
    return EndOfLine();
  }

  Result<std::size_t> StageOf(std::string_view what) {
    const std::string name(cursor_.Field());
    const auto found = stage_of_name_.find(name);
    if (found == stage_of_name_.end()) {
      return tl::unexpected(cursor_.ComplainField(what, name, "a stage of this job"));
    }
    return found->second;
  }

  Status ReadShuffles() {
    if (Status status = NextLineOf("the number of shuffles"); !status.ok()) {
      return status;
    }
    const auto shuffles = cursor_.Integer("shuffles", 0, kShufflesMax);
    if (!shuffles) {
      return shuffles.error();
    }
    if (Status status = EndOfLine(); !status.ok()) {
      return status;
    }
    for (std::uint64_t i = 0; i < *shuffles; ++i) {
      if (Status status = NextLineOf("a shuffle"); !status.ok()) {
        return status;
      }
      if (Status status = ReadShuffle(); !status.ok()) {
        return status;
      }
    }
    return Status::Ok();
  }

  Status ReadShuffle() {
    const auto from = StageOf("source stage");
    if (!from) {
      return from.error();
    }
    const auto to = StageOf("destination stage");
    if (!to) {
      return to.error();
    }
    const auto mb = cursor_.ParsePositive(cursor_.Field(), "megabytes", static_cast<double>(kFlowBytesMax / kMegabyte));
    if (!mb) {
      return mb.error();
    }
    Input& input = inputs_[*to];
    if (!cursor_.AtEnd()) {
      const auto deadline = cursor_.ParsePositive(cursor_.Field(), "deadline in s", kSecondsMax);
      if (!deadline) {
        return deadline.error();
      }
      const auto ns = std::max<Nanoseconds>(1, std::llround(*deadline * static_cast<double>(kSecond)));
      input.deadline = input.deadline == 0 ? ns : std::min(input.deadline, ns);
    }
    input.from.push_back(*from);
    // Every task of the source sends the same to every task of the destination; what stays in a site is no traffic.
    const double share = *mb * static_cast<double>(kMegabyte) / (stages_[*from].count * stages_[*to].count);
    pairs_ += stages_[*from].tasks.size() * stages_[*to].tasks.size();
    if (pairs_ > kPairsMax) {
      return cursor_.Complain(fmt::format("the shuffles of the job have more than {} pairs of sites", kPairsMax));
    }
    for (const auto& [source, senders] : stages_[*from].tasks) {
      for (const auto& [destination, receivers] : stages_[*to].tasks) {
        if (source == destination) {
          continue;
        }
        double& bytes = input.bytes[{source, destination}];
        bytes += share * senders * receivers;
        if (bytes > static_cast<double>(kFlowBytesMax)) {
          return cursor_.Complain(fmt::format("more than {} bytes from one site to another", kFlowBytesMax));
        }
      }
    }
    return EndOfLine();
  }

  /// A coflow for each stage that gets something from another site, after those of the stages that send to it.
  Status AddCoflows(std::uint64_t job, Nanoseconds arrival) {
    const auto order = StagesInOrder();
    if (order.size() < stages_.size()) {
      return cursor_.Complain(fmt::format("the stages of job {} wait for each other in a circle", job));
    }
    ends_.assign(stages_.size(), {});
    for (const std::size_t stage : order) {
      const Input& input = inputs_[stage];
      std::vector<std::uint64_t> after;
      for (const std::size_t from : input.from) {
        after.insert(after.end(), ends_[from].begin(), ends_[from].end());
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      TraceCoflow coflow;
      for (const auto& [sites, bytes] : input.bytes) {
        coflow.flows.push_back({sites.first, sites.second, std::max<Bytes>(1, static_cast<Bytes>(bytes + 0.5))});
      }
      if (coflow.flows.empty()) {
        ends_[stage] = std::move(after);
        continue;
      }
      coflow.id = coflows_.size() + 1;
      coflow.job = job + 1;
      coflow.arrival = arrival;
      coflow.deadline = input.deadline;
      coflow.after = std::move(after);
      CountEnds(&coflow);
      ends_[stage] = {coflow.id};
      coflows_.push_back(std::move(coflow));
    }
    return Status::Ok();
  }

  /// Stages after all that send to them, else as in the file; those on or behind a circle are missing.
  std::vector<std::size_t> StagesInOrder() const {
    std::vector<std::size_t> waiting(stages_.size());
    std::vector<std::vector<std::size_t>> next(stages_.size());
    std::vector<std::size_t> order;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      waiting[stage] = inputs_[stage].from.size();
      for (const std::size_t from : inputs_[stage].from) {
        next[from].push_back(stage);
      }
      if (waiting[stage] == 0) {
        order.push_back(stage);
      }
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::size_t stage : next[order[i]]) {
        if (--waiting[stage] == 0) {
          order.push_back(stage);
        }
      }
    }
    return order;
  }

  LineCursor cursor_;
  std::map<std::string, std::uint32_t, std::less<>> sites_;  ///< Numbered as they are met.
  std::vector<TraceCoflow> coflows_;

  // Of the job at hand, by stage.
  std::vector<Stage> stages_;
  std::vector<Input> inputs_;
  std::size_t pairs_ = 0;
  std::vector<std::vector<std::uint64_t>> ends_;  ///< The coflows that must end before what the stage sends.
  std::unordered_map<std::string, std::size_t> stage_of_name_;
};

class TerraReader final : public Reader {
 public:
  TerraReader(std::uint32_t ports, std::vector<TraceCoflow> coflows) : ports_(ports), coflows_(std::move(coflows)) {}

  std::uint32_t ports() const override { return ports_; }
  std::size_t line() const override { return 0; }
  Result<bool> Next(TraceCoflow* coflow) override {
    if (next_ == coflows_.size()) {
      return false;
    }
    *coflow = std::move(coflows_[next_++]);
    return true;
  }

 private:
  std::uint32_t ports_;
  std::vector<TraceCoflow> coflows_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<Reader>> OpenTerra(std::unique_ptr<std::istream> in, std::string origin) {
  TerraParser parser(in.get(), origin);
  if (Status status = parser.Run(); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return std::unique_ptr<Reader>(std::make_unique<TerraReader>(parser.sites(), parser.TakeCoflows()));
}

}  // namespace weir::traces
