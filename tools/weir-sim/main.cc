#include <fmt/format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "tools/weir-sim/attendant.h"
#include "tools/weir-sim/commands.h"

DEFINE_string(trace, "", "trace file; a bare name is looked for in WEIR_TRACES as well");
DEFINE_string(policy, "ls", "a policy: a name, or words like \"order=dclas factor=2 queues=20\"");
DEFINE_string(policies, "", "policies, separated by commas; none: the known ones, with --compat its own");
DEFINE_string(output, "table", "table, json or csv");
DEFINE_string(units, "ms",
              "ms, or coflowsim: arrivals are read and times reported in its unit, rounded up to its step of 8");
DEFINE_string(compat, "",
              "coflowsim: be the field's simulator, with its policies in capitals and all its peculiarities");
DEFINE_string(compat_arrivals, "default", "with --compat: default, every 10.24 s and up to that early, or exact");
DEFINE_double(compat_zero_bps, 1,
              "with --compat: free capacity of a port, bit/s, taken for none; 0.001 as in the source of CoflowSim");
DEFINE_string(report, "", "write a page with pictures of the runs here, HTML");
DEFINE_string(progress, "auto", "a bar on standard error: auto, on a terminal; on; off");
DEFINE_string(coflow, "", "id of the coflow to explain");
DEFINE_string(fabric, "big-switch",
              "big-switch, leaf-spine, or a topology FILE.toml; all but the first need a fluid rate");
DEFINE_uint32(leaves, 0, "leaf-spine: leaves, with about equally many ports each; 0: the square root of the ports");
DEFINE_uint32(spines, 1, "leaf-spine: how many; each pair of ports keeps to one");
DEFINE_double(oversubscription, 1, "leaf-spine: capacity of a leaf's ports over that of its links to the spines");
DEFINE_double(port_mib, 128, "speed of every port in MiB/s; of the fastest, and not set, with a topology file");
DEFINE_double(delay_ms, 0, "coordination delay: what is seen at one tick of this period is acted on at the next");
DEFINE_double(reporting_interval_ms, 0, "fluid rates: flow ends are heard of at multiples of this; 0: at once");
DEFINE_string(capacity_changes, "",
              "fluid rates: failures and degradations, such as \"5000 up3 0, 9000 up3 0.5\": time, link, share");
DEFINE_int32(levels, 0, "priority levels of the fabric, pilots have one more; 0: no limit");
DEFINE_uint64(seed, 1, "seed of what is random: the choice of pilot flows, or what is generated");
DEFINE_string(cct_csv, "", "write coflow_id,cct here");
DEFINE_double(scale_bytes, 1, "multiply the bytes of every flow");
DEFINE_double(scale_arrivals, 1, "multiply every arrival time");
DEFINE_double(skew_sigma, 0, "split what a port receives over its senders by lognormal shares of this sigma");
DEFINE_uint64(skew_seed, 1, "seed of --skew_sigma");
DEFINE_uint64(shuffle_seed, 0, "deal the arrival times out to the coflows anew; 0: as in the trace");
DEFINE_double(batch_ms, 0, "a coflow that arrives in (T, T + this] arrives at T; 0: as in the trace");
DEFINE_double(deadline_factor, -1, "deadlines of isolation x (1 + U(0,1) x this); -1: as in the trace");
DEFINE_uint64(deadline_seed, 1, "seed of --deadline_factor");
DEFINE_string(arrivals, "trace", "trace, or zero: every coflow may start at time 0 (the offline problem)");
DEFINE_string(bounds, "quick",
              "effort of the lower bounds: none (isolation alone), quick (a second) or full (seconds)");
DEFINE_string(format, "weir", "facebook, sincronia or weir; what is read says by itself what it is, terra as well");
DEFINE_string(out, "", "file to write");
DEFINE_string(pattern, "facebook",
              "facebook: a look-alike of the public trace; training jobs: ring, tree, all-to-all, ps, pipeline");
DEFINE_uint32(ports, 150, "ports of the fabric");
DEFINE_uint32(coflows, 526, "facebook: how many");
DEFINE_double(span_s, 3600, "first to last arrival, or the time in which the jobs begin, in seconds");
DEFINE_double(load, 0.52, "facebook: all bytes over what the ports can move in that time");
DEFINE_double(width, 1, "facebook: multiply the senders and receivers of every coflow");
DEFINE_double(skew, 0.5, "facebook: sigma of the lognormal sizes of the receivers of one coflow");
DEFINE_uint32(jobs, 10, "training: how many jobs");
DEFINE_uint32(ranks, 8, "training: ranks or stages of a job, each on a port of its own");
DEFINE_uint32(iterations, 10, "training: of each job");
DEFINE_uint32(micro_batches, 4, "pipeline: in an iteration");
DEFINE_uint64(bytes, 104'857'600, "training: of the buffer, or of one send");
DEFINE_double(period_s, 1, "training: an iteration does not start before this times its number");

namespace weir::tools {
namespace {

constexpr std::string_view kTraceFlags[] = {"trace",         "scale_bytes",  "scale_arrivals", "skew_sigma",
                                            "skew_seed",     "shuffle_seed", "batch_ms",       "deadline_factor",
                                            "deadline_seed", "arrivals"};
constexpr std::string_view kCompatFlags[] = {"compat", "compat_arrivals", "compat_zero_bps"};
constexpr std::string_view kUnitFlags[] = {"units", "port_mib"};
constexpr std::string_view kFabricFlags[] = {"fabric", "leaves", "spines", "oversubscription"};
constexpr std::string_view kPolicyFlags[] = {"delay_ms", "reporting_interval_ms", "capacity_changes", "levels", "seed",
                                             "bounds"};

void Append(std::span<const std::string_view> more, std::vector<std::string_view>* names) {
  names->insert(names->end(), more.begin(), more.end());
}

/// The flags that a command takes, in the order of its help; a new flag is named here. Empty: no such command.
std::vector<std::string_view> FlagsOf(std::string_view command) {
  std::vector<std::string_view> names;
  if (command == "run" || command == "compare") {
    names = {command == "run" ? "policy" : "policies", "output", "report", "progress"};
    if (command == "run") {
      names.emplace_back("cct_csv");
    }
    Append(kCompatFlags, &names);
    Append(kUnitFlags, &names);
    Append(kFabricFlags, &names);
    Append(kPolicyFlags, &names);
    Append(kTraceFlags, &names);
  } else if (command == "explain") {
    names = {"coflow", "policy", "output", "progress"};
    Append(kUnitFlags, &names);
    Append(kFabricFlags, &names);
    for (const std::string_view name : kPolicyFlags) {
      if (name != "bounds") {
        names.push_back(name);
      }
    }
    Append(kTraceFlags, &names);
  } else if (command == "convert") {
    names = {"format", "out", "compat", "compat_arrivals"};
    Append(kUnitFlags, &names);
    Append(kTraceFlags, &names);
  } else if (command == "generate") {
    names = {"pattern", "seed", "ports", "span_s", "format",     "out",           "coflows", "load",    "port_mib",
             "width",   "skew", "jobs",  "ranks",  "iterations", "micro_batches", "bytes",   "period_s"};
  } else if (command == "policies") {
    names = {"output"};
  }
  return names;
}

Status CheckKnown(std::string_view command, const std::string& name) {
  const auto allowed = FlagsOf(command);
  if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) {
    return Status::Ok();
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("--{} is not a flag of \"{}\"; allowed: --{}", name, command, fmt::join(allowed, ", --")));
}

/// Sets flags from `--name=value`, `--name value` and `--name`; other than gflags itself it refuses those of other
/// commands and says what is allowed.
Status ParseFlags(std::string_view command, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--") || arguments[i].size() == 2) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("found \"{}\" after \"{}\", allowed: flags, as --name=value", arguments[i], command));
    }
    const std::size_t equals = arguments[i].find('=');
    std::string name = arguments[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    if (Status status = CheckKnown(command, name); !status.ok()) {
      return status;
    }
    const auto info = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    std::string value = "true";
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (info.type != "bool") {
      if (++i == arguments.size()) {
        return Status(StatusCode::kInvalidArgument, fmt::format("--{} has no value, allowed: {}", name, info.type));
      }
      value = arguments[i];
    }
    if (gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("--{}: found \"{}\", allowed: {}", name, value, info.type));
    }
  }
  return Status::Ok();
}

Options OptionsFromFlags() {
  Options options;
  options.trace = FLAGS_trace;
  options.policy = FLAGS_policy;
  options.policies = FLAGS_policies;
  options.output = FLAGS_output;
  options.units = FLAGS_units;
  options.cct_csv = FLAGS_cct_csv;
  options.compat = FLAGS_compat;
  options.compat_arrivals = FLAGS_compat_arrivals;
  options.compat_zero_bps = FLAGS_compat_zero_bps;
  options.format = FLAGS_format;
  options.out = FLAGS_out;
  options.coflow = FLAGS_coflow;
  options.report = FLAGS_report;
  options.progress = FLAGS_progress;
  options.fabric = FLAGS_fabric;
  options.leaves = FLAGS_leaves;
  options.spines = FLAGS_spines;
  options.oversubscription = FLAGS_oversubscription;
  options.port_mib = FLAGS_port_mib;
  options.delay_ms = FLAGS_delay_ms;
  options.reporting_interval_ms = FLAGS_reporting_interval_ms;
  options.capacity_changes = FLAGS_capacity_changes;
  options.levels = FLAGS_levels;
  options.seed = FLAGS_seed;
  options.arrivals = FLAGS_arrivals;
  options.bounds = FLAGS_bounds;
  options.scale_bytes = FLAGS_scale_bytes;
  options.scale_arrivals = FLAGS_scale_arrivals;
  options.skew_sigma = FLAGS_skew_sigma;
  options.skew_seed = FLAGS_skew_seed;
  options.shuffle_seed = FLAGS_shuffle_seed;
  options.batch_ms = FLAGS_batch_ms;
  options.deadline_factor = FLAGS_deadline_factor;
  options.deadline_seed = FLAGS_deadline_seed;
  options.pattern = FLAGS_pattern;
  options.ports = FLAGS_ports;
  options.coflows = FLAGS_coflows;
  options.span_s = FLAGS_span_s;
  options.load = FLAGS_load;
  options.width = FLAGS_width;
  options.skew = FLAGS_skew;
  options.jobs = FLAGS_jobs;
  options.ranks = FLAGS_ranks;
  options.iterations = FLAGS_iterations;
  options.micro_batches = FLAGS_micro_batches;
  options.bytes = FLAGS_bytes;
  options.period_s = FLAGS_period_s;
  return options;
}

std::vector<FlagHelp> FlagHelpOf(std::string_view command) {
  std::vector<FlagHelp> flags;
  for (const std::string_view name : FlagsOf(command)) {
    const auto info = gflags::GetCommandLineFlagInfoOrDie(std::string(name).c_str());
    const bool is_double = info.type == "double";
    flags.push_back({info.name, info.description,
                     is_double ? fmt::format("{:g}", std::stod(info.default_value)) : info.default_value});
  }
  return flags;
}

struct Command {
  std::string_view name;
  int (*run)(const Options&);
};

constexpr Command kCommands[] = {{"run", &RunCommand},           {"compare", &CompareCommand},
                                 {"explain", &ExplainCommand},   {"convert", &ConvertCommand},
                                 {"generate", &GenerateCommand}, {"policies", &PoliciesCommand}};

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h";
}

int Help(const std::string& command) {
  return HelpCommand(command, FlagHelpOf(command));
}

int Main(const std::vector<std::string>& arguments) {
  const std::string name = arguments.empty() ? "" : arguments[0];
  if (name == "--version") {
    std::cout << "weir-sim " WEIR_VERSION "\n";
    return 0;
  }
  if (name == "help" || AsksForHelp(name)) {
    return Help(arguments.size() > 1 ? arguments[1] : "");
  }
  const auto* command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                     [&name](const Command& candidate) { return candidate.name == name; });
  if (command == std::end(kCommands)) {
    return Fail(Status(StatusCode::kInvalidArgument,
                       fmt::format("found command \"{}\"; \"weir-sim help\" lists what is allowed", name)));
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (std::any_of(rest.begin(), rest.end(), &AsksForHelp)) {
    return Help(name);
  }
  const Status status = ParseFlags(name, rest);
  if (!status.ok()) {
    return Fail(status);
  }
  Options options = OptionsFromFlags();
  options.command_line = "weir-sim";
  for (const std::string& argument : arguments) {
    options.command_line += argument.find(' ') == std::string::npos ? " " + argument : " \"" + argument + "\"";
  }
  Attendant attendant;
  if (Status mode = attendant.ShowProgress(options.progress); !mode.ok()) {
    return Fail(mode);
  }
  options.attendant = &attendant;
  return command->run(options);
}

}  // namespace
}  // namespace weir::tools

int main(int argc, char** argv) {
  return weir::tools::Main(std::vector<std::string>(argv + 1, argv + argc));
}
