// weir-turns-lab: how a turn policy does on the mixes of the two-site experiment, in virtual time, in a second.
#include <gflags/gflags.h>

#include <cstdio>
#include <map>
#include <sstream>

#include "bench/turns_lab/lab.h"
#include "coflow/command_line.h"

DEFINE_string(policy, "turns", "policy to play: turns, fifo, max-min or none");
DEFINE_string(mix, "", "play this mix only");
DEFINE_double(seconds, 120, "virtual seconds a run");
DEFINE_double(delay_ms, 1, "control delay: from an event at one host to the gate at another");
DEFINE_double(noise, 0.01, "relative deviation of compute times");
DEFINE_bool(learned, false, "print what was learned of each job");
DEFINE_int32(seeds, 4, "runs a mix; the first starts all jobs together, the others at random offsets");

namespace weir::lab {
namespace {

using Mix = std::pair<std::string, std::vector<JobSpec>>;

std::vector<Mix> Mixes() {
  return {
      {"two-equal", {DataParallel("a", 4, 700), DataParallel("b", 4, 700)}},
      {"two-equal-over", {DataParallel("a", 4, 320), DataParallel("b", 4, 320)}},
      {"three-equal", {DataParallel("a", 4, 700), DataParallel("b", 4, 700), DataParallel("c", 4, 700)}},
      {"different", {DataParallel("small", 4, 400), DataParallel("large", 20, 400)}},
      {"skewed", {DataParallel("small", 0.5, 60), DataParallel("large", 40, 200)}},
      {"three-sizes", {DataParallel("small", 1, 300), DataParallel("middle", 4, 600), DataParallel("large", 12, 600)}},
      {"pipeline", {Pipeline("pipeline", 250, 4, 200), DataParallel("large", 20, 400)}},
  };
}

double Alone(const JobSpec& spec, LabOptions options) {
  const auto none = scheduler::MakePolicy("none");
  options.seconds = 30;
  return Lab({spec}, {0}, **none, options).Run()[0].mean_s;
}

int Play(const Mix& mix) {
  LabOptions options;
  options.seconds = FLAGS_seconds;
  options.control_delay_s = FLAGS_delay_ms / 1e3;
  options.noise = FLAGS_noise;
  std::vector<double> alone;
  for (const JobSpec& spec : mix.second) alone.push_back(Alone(spec, options));
  double sum = 0;
  std::ostringstream runs;
  for (int seed = 1; seed <= FLAGS_seeds; ++seed) {
    auto policy = scheduler::MakePolicy(FLAGS_policy);
    if (!policy) {
      std::fprintf(stderr, "%s\n", policy.error().message().c_str());
      return 2;
    }
    options.seed = static_cast<std::uint64_t>(seed);
    std::mt19937_64 random(options.seed);
    std::vector<double> starts;
    for (const double each : alone) {
      starts.push_back(seed == 1 ? 0 : std::uniform_real_distribution<double>(0, each)(random));
    }
    const std::vector<JobResult> results = Lab(mix.second, starts, **policy, options).Run();
    double mean = 0;
    runs << "  ";
    for (std::size_t j = 0; j < results.size(); ++j) {
      const double slowdown = results[j].mean_s / alone[j];
      mean += slowdown / static_cast<double>(results.size());
      char text[64];
      std::snprintf(text, sizeof text, "%s%.2f", j > 0 ? "/" : "", slowdown);
      runs << text;
      if (FLAGS_learned)
        runs << "(alone " << results[j].alone_learned_s / alone[j] << ", confidence " << results[j].confidence << ")";
    }
    sum += mean / FLAGS_seeds;
  }
  std::printf("%-15s %.3f %s\n", mix.first.c_str(), sum, runs.str().c_str());
  return 0;
}

}  // namespace
}  // namespace weir::lab

int main(int argc, char** argv) {
  weir::ParseCommandLine(
      "plays the mixes of bench/two-sites in virtual time: mean slowdown against alone, then each run's jobs.\n"
      "Example: weir-turns-lab --policy turns --mix skewed",
      __FILE__, &argc, &argv);
  bool found = false;
  for (const weir::lab::Mix& mix : weir::lab::Mixes()) {
    if (!FLAGS_mix.empty() && FLAGS_mix != mix.first) continue;
    found = true;
    if (const int code = weir::lab::Play(mix); code != 0) return code;
  }
  if (!found) std::fprintf(stderr, "no mix is called \"%s\"\n", FLAGS_mix.c_str());
  return found ? 0 : 2;
}
