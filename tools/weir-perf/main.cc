#include <fmt/format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "tools/weir-perf/backends.h"
#include "tools/weir-perf/doctor.h"
#include "tools/weir-perf/emulate/emulate.h"
#include "tools/weir-perf/emulate/nccl_doctor.h"
#include "tools/weir-perf/ends.h"
#include "tools/weir-perf/faults.h"
#include "tools/weir-perf/levels.h"
#include "tools/weir-perf/link_program.h"
#include "tools/weir-perf/measure.h"
#include "tools/weir-perf/rendezvous.h"
#include "tools/weir-perf/report.h"
#include "tools/weir-perf/soak.h"
#include "tools/weir-perf/test_link.h"
#include "transport/clock.h"

DEFINE_string(server, "",
              "\"pair\", \"pacing\": where weir-perf serve runs, HOST or HOST:PORT; empty: here, on loopback");
DEFINE_string(bind, "0.0.0.0", "\"serve\": address that clients meet us at");
DEFINE_int32(port, 7080, "\"serve\": port that clients meet us at");
DEFINE_bool(once, false, "\"serve\": end after one client");
DEFINE_string(sizes, "1,1K,16K,64K,256K,1M,16M", "\"pair\": sizes of messages; K, M, G are powers of 1024");
DEFINE_string(rates, "1M,10M,100M,1G,5G", "\"pacing\": caps in bits a second; K, M, G are powers of 1000");
DEFINE_string(
    coflows, "8x7,0@0.5-1.5",
    "\"coflows\": COUNTxLEVEL@FROM-UNTIL/CAP, separated by commas: seconds, bits a second; only the level is needed");
DEFINE_int32(step_ms, 50, "\"coflows\": of each row");
DEFINE_int32(low, 8, "\"levels\": coflows of level 7");
DEFINE_int32(runs, 5, "\"levels\": how often the one of level 0 starts");
DEFINE_string(test, "both", "\"pair\": bandwidth, latency or both");
DEFINE_double(seconds, 0,
              "\"pair\": of each bandwidth test, and at most about so long of each latency test (0: 1); \"coflows\": "
              "of all (0: 2)");
DEFINE_int32(in_flight, 8, "\"pair\": sends under way");
DEFINE_string(backend, "tcp", "what moves the bytes; both ends must say the same");
DEFINE_string(options, "", "what only the backend knows: key=value,key=value");
DEFINE_int32(streams, 0, "connections that a channel spreads large messages over; 0: the backend's default");
DEFINE_int32(stripe_kb, 0, "in chunks of this; 0: the backend's default");
DEFINE_string(
    scenarios, "all",
    "\"faults\": all, or some of kill,freeze,cut,flap,loss; the last three need a link of our own, so root or "
    "user namespaces, or --link_program");
DEFINE_string(link_program, "",
              "\"faults\": a program that makes the link between the two ends lose that many percent of frames as its "
              "one word says, 100 to cut it and 0 to mend it; empty: a link of our own");
DEFINE_double(lasts_ms, 500, "\"faults\": how long freeze and flap last");
DEFINE_double(loss_percent, 1, "\"faults\": of frames that loss loses, each way");
DEFINE_string(peer_options, "", "\"faults\": --options of the peer; empty: as ours, or the backend's own for the link");
DEFINE_double(gb, 0,
              "\"soak\", \"faults\": 10^9 bytes each way, the first message is half of it (0: 1 of a soak, 0.1 of each "
              "scenario)");
DEFINE_int32(seed, 1, "\"soak\", \"faults\": of sizes, bytes, directives and losses");
DEFINE_int32(dead_after_ms, 10000, "a link over which nothing came back for so long is dead");
DEFINE_string(interfaces, "", "network interfaces, as in NCCL_SOCKET_IFNAME; empty: the environment's");
DEFINE_string(output, "table", "table, json or csv");
DEFINE_string(plugin, "libnccl-net-weir.so", "\"nccl-emulate\": the network plugin to drive");
DEFINE_string(abi, "",
              "\"nccl-emulate\": version of NCCL's interface, v6 to v12; empty: the highest that the plugin has");
DEFINE_int32(ranks, 2, "\"nccl-emulate\": processes");
DEFINE_int32(channels, 2, "\"nccl-emulate\": of each pair of ranks");
DEFINE_string(collectives, "all",
              "\"nccl-emulate\": all, or some of all-reduce, tree-all-reduce, all-gather, "
              "reduce-scatter, broadcast, all-to-all, send-receive");
DEFINE_int32(rounds, 3, "\"nccl-emulate\": of each collective and size");
DEFINE_bool(flush, false, "\"nccl-emulate\": receives are flushed before anybody sees them, as for GPUs before Hopper");
DEFINE_int32(cycles, 1, "\"nccl-emulate\": of init, connect, all collectives, close, finalize");
DEFINE_int32(slice_kb, 128, "\"nccl-emulate\": KiB of one transfer, at most");
DEFINE_int32(receives, 1, "\"nccl-emulate\": receives posted together by all-to-all and send-receive");
DEFINE_double(compute_ms, 0, "\"nccl-emulate\": pause between two collectives");
DEFINE_int32(idle_us, 0,
             "\"nccl-emulate\": sleep of a progress thread when nothing moved; 0: it only yields, as NCCL's does");
DEFINE_string(fault, "none", "\"nccl-emulate\": none, abort (everything is closed in flight) or kill (of one rank)");
DEFINE_double(fault_ms, 50, "\"nccl-emulate\": how long transfers go on before the fault");
DEFINE_string(profiler, "",
              "\"nccl-emulate\": version of the profiler that is fed, v3 to v6, or none; empty: the highest");
DEFINE_string(
    namespaces, "",
    "\"nccl-emulate\": network namespaces, separated by commas, which ranks are in by turns; empty: this one");
DEFINE_string(agent_sockets, "",
              "\"nccl-emulate\": sockets of the agents that ranks attach to by turns; empty: the environment's");
DEFINE_string(per_rank, "", "\"nccl-emulate\": a variable that ranks have by turns, NAME=VALUE|VALUE");
DEFINE_bool(plugin_log, false, "\"nccl-emulate\": show what the plugin says, on standard error");
DEFINE_string(html, "", "also write an HTML report to this file");

namespace {

using weir::Error;
using weir::Result;
using weir::Status;
using weir::StatusCode;
using weir::tools::Rendezvous;
using weir::tools::Sheet;
using weir::transport::Transport;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kUnreachable = 3;
constexpr const char* kUsage =
    "measures the transport between two hosts, or on this one.\n"
    "  weir-perf serve                               on one host,\n"
    "  weir-perf pair   --server HOST                on the other: throughput and latency over sizes\n"
    "  weir-perf pacing --server HOST --rates 1M,1G  how exactly caps are kept, and how soon a change holds\n"
    "  weir-perf levels --server HOST                how soon a coflow of level 0 has the link, and others have it "
    "back\n"
    "  weir-perf coflows --server HOST --coflows 4x7,2x3/1G,0@0.5-1   who has what over time\n"
    "  weir-perf soak   --server HOST --gb 5         random messages both ways under changing directives, each byte "
    "compared\n"
    "  weir-perf faults                              the peer killed or stopped, the link cut, flapping or losing: "
    "what "
    "comes of it\n"
    "  weir-perf doctor                              which backends this host can use, and what to do about the rest\n"
    "  weir-perf nccl-emulate --plugin PATH          a network plugin of NCCL's driven as NCCL does, all ranks on this "
    "host\n"
    "  weir-perf nccl-doctor                         which plugin each NCCL would load here, and what is wrong with "
    "it\n"
    "Without --server, both ends are threads of this process. Example:\n"
    "  weir-perf pair --sizes 1K,1M --seconds 0.5 --output json";

int Fail(const Status& status) {
  std::cerr << "weir-perf: " << status.message() << '\n';
  if (status.code() == StatusCode::kInvalidArgument) return kWrongUsage;
  return status.code() == StatusCode::kUnavailable ? kUnreachable : kFailed;
}

Result<weir::tools::BackendSettings> Settings(bool loopback) {
  const auto count = [](const char* name, int found, int most) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: 0 to {}", name, found, most));
  };
  if (FLAGS_streams < 0 || FLAGS_streams > 1024) return tl::unexpected(count("--streams", FLAGS_streams, 1024));
  if (FLAGS_stripe_kb < 0 || FLAGS_stripe_kb > (1 << 20)) {
    return tl::unexpected(count("--stripe_kb", FLAGS_stripe_kb, 1 << 20));
  }
  if (FLAGS_dead_after_ms < 1) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--dead_after_ms: found {}, allowed: from 1 on", FLAGS_dead_after_ms));
  }
  auto options = weir::transport::KeyValues::Parse("--options", FLAGS_options);
  if (!options) return tl::unexpected(options.error());
  return weir::tools::BackendSettings{loopback,
                                      FLAGS_interfaces,
                                      static_cast<std::uint32_t>(FLAGS_streams),
                                      static_cast<weir::Bytes>(FLAGS_stripe_kb) * 1024,
                                      FLAGS_dead_after_ms * weir::kMillisecond,
                                      std::move(*options)};
}

Result<std::unique_ptr<Transport>> MakeTransport(bool loopback) {
  const auto settings = Settings(loopback);
  if (!settings) return tl::unexpected(settings.error());
  const auto backend = weir::tools::FindBackend(FLAGS_backend);
  return backend ? (*backend)->make(*settings) : tl::unexpected(backend.error());
}

Result<std::uint16_t> CheckPort(long port) {
  if (port >= 0 && port <= 65535) return static_cast<std::uint16_t>(port);
  return Error(StatusCode::kInvalidArgument, fmt::format("port: found {}, allowed: 0 to 65535", port));
}

/// "host", "host:port", "[v6]:port".
Result<std::unique_ptr<Rendezvous>> Meet(const std::string& server) {
  std::string host = server;
  long port = FLAGS_port;
  const std::size_t colon = server.rfind(':');
  if (colon != std::string::npos && (server.find(':') == colon || server[colon - 1] == ']')) {
    host = server.substr(0, colon);
    port = std::strtol(server.c_str() + colon + 1, nullptr, 10);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto checked = CheckPort(port);
  return checked ? Rendezvous::Connect(host, *checked) : tl::unexpected(checked.error());
}

int Serve() {
  const auto port = CheckPort(FLAGS_port);
  if (!port) return Fail(port.error());
  auto transport = MakeTransport(false);
  if (!transport) return Fail(transport.error());
  const auto point = weir::tools::MeetingPoint::Open(FLAGS_bind, *port);
  if (!point) return Fail(point.error());
  std::cerr << "weir-perf: serving on " << FLAGS_bind << ':' << (*point)->port() << ", data on "
            << (*transport)->devices().front().name << '\n';
  while (true) {
    auto client = (*point)->Accept();
    if (!client) return Fail(client.error());
    const Status status = weir::tools::Serve(client->get(), transport->get());
    if (!status.ok()) std::cerr << "weir-perf: client lost: " << status.message() << '\n';
    if (FLAGS_once) return status.ok() ? 0 : kFailed;
  }
}

Result<Sheet> MeasureSizes(Rendezvous* rendezvous, Transport* transport) {
  weir::tools::MeasureOptions options;
  options.seconds = FLAGS_seconds == 0 ? 1 : FLAGS_seconds;
  options.in_flight = static_cast<std::uint32_t>(FLAGS_in_flight);
  options.bandwidth = FLAGS_test != "latency";
  options.latency = FLAGS_test != "bandwidth";
  std::vector<weir::tools::SizeResult> results;
  const auto sizes = weir::tools::ParseSizes(FLAGS_sizes);
  if (!sizes) return Error(sizes.error().code(), "--sizes: " + sizes.error().message());
  for (const weir::Bytes size : *sizes) {
    const auto result = weir::tools::MeasureSize(size, options, rendezvous, transport);
    if (!result) return tl::unexpected(result.error());
    results.push_back(*result);
  }
  return weir::tools::SizesSheet(results);
}

Result<Sheet> MeasureRates(Rendezvous* rendezvous, Transport* transport) {
  std::vector<weir::tools::PacingResult> results;
  const auto rates = weir::tools::ParseRates(FLAGS_rates);
  if (!rates) return Error(rates.error().code(), "--rates: " + rates.error().message());
  for (const double rate : *rates) {
    const auto result = weir::tools::MeasurePacing(rate, rendezvous, transport);
    if (!result) return tl::unexpected(result.error());
    results.push_back(*result);
  }
  return weir::tools::PacingSheet(results);
}

Result<Sheet> LookAtLevels(Rendezvous* rendezvous, Transport* transport) {
  Sheet sheet;
  const auto results = weir::tools::MeasureLevels(
      static_cast<std::uint32_t>(FLAGS_low), static_cast<std::uint32_t>(FLAGS_runs), rendezvous, transport, &sheet);
  return results ? Result<Sheet>(std::move(sheet)) : tl::unexpected(results.error());
}

Result<Sheet> LookAtCoflows(Rendezvous* rendezvous, Transport* transport) {
  const double seconds = FLAGS_seconds == 0 ? 2 : FLAGS_seconds;
  if (seconds > weir::tools::kRunMax_s) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--seconds: found {}, allowed: 0.01 to {} with coflows", seconds, weir::tools::kRunMax_s));
  }
  return weir::tools::MeasureCoflows(FLAGS_coflows, seconds, static_cast<std::uint32_t>(FLAGS_step_ms), rendezvous,
                                     transport);
}

Result<Sheet> MeasureSoak(Rendezvous* rendezvous, Transport* transport) {
  const double gb = FLAGS_gb == 0 ? 1 : FLAGS_gb;
  const weir::tools::Plan plan{weir::tools::TestKind::kSoak, static_cast<weir::Bytes>(gb * 1e9),
                               static_cast<std::uint32_t>(FLAGS_seed)};
  const weir::tools::ChangingDirectives directives(plan.count);
  weir::transport::Pacer pacer;
  weir::transport::Lane lane(&pacer, &directives);
  auto channels = weir::tools::AskFor(plan, rendezvous, transport, &lane);
  if (!channels) return tl::unexpected(channels.error());
  const weir::Nanoseconds begin = weir::transport::SteadyClock().Now();
  weir::tools::SoakResult seen;
  if (Status status = weir::tools::Soak(plan, true, &*channels, &seen); !status.ok()) return tl::unexpected(status);
  const auto end = rendezvous->Receive();
  if (!end) return tl::unexpected(end.error());
  if (!end->starts_with("done ")) return Error(StatusCode::kInternal, "the other end says: " + *end);
  const double seconds = weir::ToSeconds(weir::transport::SteadyClock().Now() - begin);
  return weir::tools::SoakSheet(seen, FLAGS_seed, seconds);
}

/// To standard output, and where --html says.
int Publish(const Sheet& sheet, const std::string& command, weir::tools::PerfOutput output) {
  weir::tools::PrintSheet(sheet, output, &std::cout);
  if (FLAGS_html.empty()) return 0;
  std::ofstream file(FLAGS_html);
  weir::tools::PrintHtml({sheet}, fmt::format("weir-perf {} --backend={}", command, FLAGS_backend), &file);
  file.close();
  if (file) return 0;
  return Fail(Status(StatusCode::kInvalidArgument, fmt::format("--html: cannot write \"{}\"", FLAGS_html)));
}

const std::map<std::string, Result<Sheet> (*)(Rendezvous*, Transport*)> kMeasures{{"pair", MeasureSizes},
                                                                                  {"pacing", MeasureRates},
                                                                                  {"levels", LookAtLevels},
                                                                                  {"coflows", LookAtCoflows},
                                                                                  {"soak", MeasureSoak}};

int Measure(const std::string& command, Rendezvous* rendezvous, weir::tools::PerfOutput output) {
  auto transport = MakeTransport(FLAGS_server.empty());
  if (!transport) return Fail(transport.error());
  const auto sheet = kMeasures.at(command)(rendezvous, transport->get());
  static_cast<void>(rendezvous->Send("bye"));  // It notices anyway.
  return sheet ? Publish(*sheet, command, output) : Fail(sheet.error());
}

/// What carries the frames of a run of faults: a link of our own, one that a program of the user's loses frames of, or
/// one that cannot be told to.
struct FaultLink {
  std::unique_ptr<weir::tools::TestLink> own;  ///< Null: the ends meet over loopback.
  weir::tools::Lose lose;                      ///< Empty: it cannot, and why.
  Status why;
};

/// One scenario with a peer of its own.
Result<weir::tools::FaultResult> MeasureFault(weir::tools::Fault fault, const weir::tools::Backend& backend,
                                              const std::string& peer_options, const FaultLink& link) {
  const std::vector<std::string> flags{"--backend=" + FLAGS_backend,
                                       "--options=" + peer_options,
                                       "--interfaces=" + FLAGS_interfaces,
                                       fmt::format("--streams={}", FLAGS_streams),
                                       fmt::format("--stripe_kb={}", FLAGS_stripe_kb),
                                       fmt::format("--dead_after_ms={}", FLAGS_dead_after_ms)};
  auto transport = MakeTransport(false);
  if (!transport) return tl::unexpected(transport.error());
  auto peer = weir::tools::FaultPeer::Start(flags, link.own.get());
  if (!peer) return tl::unexpected(peer.error());
  auto rendezvous = Rendezvous::Connect((*peer)->host(), (*peer)->port());
  if (!rendezvous) return tl::unexpected(rendezvous.error());
  weir::tools::FaultOptions options;
  options.lasts = static_cast<weir::Nanoseconds>(FLAGS_lasts_ms * 1e6);
  options.bound = FLAGS_dead_after_ms * weir::kMillisecond;
  if (!backend.faults.told_of_exit) options.exit_bound = options.bound;
  options.loss = FLAGS_loss_percent / 100;
  options.bytes = static_cast<weir::Bytes>((FLAGS_gb == 0 ? 0.1 : FLAGS_gb) * 1e9);
  options.seed = static_cast<std::uint32_t>(FLAGS_seed);
  return weir::tools::MeasureFault(fault, options, **peer, link.lose, rendezvous->get(), transport->get());
}

/// A link for all scenarios, if the backend and this host can have one; else why not. Sets what the two ends use there,
/// unless the user did.
FaultLink MakeLink(const weir::tools::Backend& backend, std::string* peer_options) {
  const weir::tools::FaultSupport& support = backend.faults;
  if (!FLAGS_link_program.empty()) {
    const auto tell = [program = weir::tools::LinkProgram(FLAGS_link_program)](double probability) {
      return program.Lose(probability);
    };
    return {nullptr, tell, Status::Ok()};
  }
  if (!support.no_link.empty()) return {nullptr, {}, Status(StatusCode::kUnsupported, std::string(support.no_link))};
  auto link = weir::tools::TestLink::Make(support.mtu, static_cast<std::uint64_t>(FLAGS_seed));
  if (!link) return {nullptr, {}, link.error()};
  if (FLAGS_interfaces.empty()) FLAGS_interfaces = fmt::format("={}", weir::tools::TestLink::kDevice);
  if (FLAGS_options.empty()) FLAGS_options = support.options[0];
  if (peer_options->empty()) *peer_options = support.options[1];
  const auto tell = [own = link->get()](double probability) {
    own->Lose(probability);
    return Status::Ok();
  };
  return {std::move(*link), tell, Status::Ok()};
}

Result<std::vector<weir::tools::Fault>> ParseFaults() {
  auto faults = weir::tools::FaultsFromNames(FLAGS_scenarios);
  if (!faults) return faults;
  const bool flaps = std::count(faults->begin(), faults->end(), weir::tools::Fault::kFlap) > 0;
  if (flaps && FLAGS_lasts_ms >= FLAGS_dead_after_ms) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--lasts_ms: found {}, allowed: less than --dead_after_ms, {}, for a flap", FLAGS_lasts_ms,
                             FLAGS_dead_after_ms));
  }
  return faults;
}

/// The peers are processes of ours. 0: all went as they must, but for what this host cannot do.
int MeasureFaults(weir::tools::PerfOutput output) {
  const auto faults = ParseFaults();
  const auto backend = weir::tools::FindBackend(FLAGS_backend);
  if (!faults) return Fail(faults.error());
  if (!backend) return Fail(backend.error());
  if (const auto settings = Settings(false); !settings) return Fail(settings.error());
  std::string peer_options = FLAGS_peer_options;
  const FaultLink link = MakeLink(**backend, &peer_options);
  if (link.own == nullptr && FLAGS_interfaces.empty()) FLAGS_interfaces = "=lo";
  if (peer_options.empty()) peer_options = FLAGS_options;
  std::vector<weir::tools::FaultResult> results;
  for (const weir::tools::Fault fault : *faults) {
    if (!link.lose && weir::tools::NeedsLink(fault)) {
      if (FLAGS_scenarios != "all") return Fail(link.why);
      results.emplace_back();
      results.back().fault = fault;
      results.back().message = link.why.message();
      continue;
    }
    const auto result = MeasureFault(fault, **backend, peer_options, link);
    if (!result) return Fail(result.error());
    results.push_back(*result);
  }
  const int code = Publish(weir::tools::FaultsSheet(results), "faults", output);
  const bool right = std::all_of(results.begin(), results.end(), [](const auto& one) {
    return weir::tools::Verdict(one) == "yes" || weir::tools::Verdict(one) == "skipped";
  });
  return right ? code : kFailed;
}

/// "a,b": its parts; nothing has none.
std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

int EmulateNccl(weir::tools::PerfOutput output) {
  namespace emulate = weir::tools::emulate;
  emulate::Options options;
  const auto version = emulate::ParseVersion(FLAGS_abi);
  const auto collectives = emulate::ParseCollectives(FLAGS_collectives);
  const auto sizes = weir::tools::ParseSizes(FLAGS_sizes);
  const auto fault = emulate::ParseFault(FLAGS_fault);
  if (!version) return Fail(version.error());
  if (!collectives) return Fail(Status(collectives.error().code(), "--collectives: " + collectives.error().message()));
  if (!sizes) return Fail(Status(sizes.error().code(), "--sizes: " + sizes.error().message()));
  if (!fault) return Fail(fault.error());
  options.plugin = FLAGS_plugin;
  options.version = *version;
  options.ranks = FLAGS_ranks;
  options.channels = FLAGS_channels;
  options.collectives = *collectives;
  options.sizes = *sizes;
  options.rounds = FLAGS_rounds;
  options.slice_bytes = static_cast<weir::Bytes>(std::max(FLAGS_slice_kb, 0)) * 1024;
  options.group = FLAGS_receives;
  options.cycles = FLAGS_cycles;
  options.flush = FLAGS_flush;
  options.compute = static_cast<weir::Nanoseconds>(FLAGS_compute_ms * 1e6);
  options.idle = FLAGS_idle_us * weir::kMicrosecond;
  options.fault = *fault;
  options.fault_after = static_cast<weir::Nanoseconds>(FLAGS_fault_ms * 1e6);
  options.list_log = FLAGS_plugin_log;
  options.namespaces = Split(FLAGS_namespaces);
  if (!FLAGS_per_rank.empty()) {
    auto variable = emulate::ParsePerRank(FLAGS_per_rank);
    if (!variable) return Fail(Status(variable.error().code(), "--per_rank: " + variable.error().message()));
    options.per_rank.push_back(std::move(*variable));
  }
  options.agent_sockets = Split(FLAGS_agent_sockets);
  options.profile = FLAGS_profiler != "none";
  const auto profiler = emulate::ParseVersion(options.profile ? FLAGS_profiler : "");
  if (!profiler) return Fail(profiler.error());
  options.profiler = *profiler;
  if (const char* report = std::getenv("WEIR_NCCL_REPORT"); report != nullptr) options.report = report;
  const auto sheet = emulate::Emulate(options);
  return sheet ? Publish(*sheet, "nccl-emulate", output) : Fail(sheet.error());
}

void PublishDiagnoses(const std::vector<weir::tools::Diagnosis>& diagnoses, weir::tools::PerfOutput output) {
  if (output == weir::tools::PerfOutput::kTable) {
    weir::tools::PrintDoctor(diagnoses, &std::cout);
  } else {
    weir::tools::PrintSheet(weir::tools::DoctorSheet(diagnoses), output, &std::cout);
  }
}

int Examine(weir::tools::PerfOutput output) {
  const auto settings = Settings(false);
  if (!settings) return Fail(settings.error());
  const auto diagnoses = weir::tools::Diagnose(*settings);
  PublishDiagnoses(diagnoses, output);
  return std::any_of(diagnoses.begin(), diagnoses.end(), [](const auto& one) { return one.usable(); }) ? 0 : kFailed;
}

int ExamineNccl(weir::tools::PerfOutput output) {
  const auto diagnoses = weir::tools::emulate::DiagnoseNccl();
  PublishDiagnoses(diagnoses, output);
  return std::all_of(diagnoses.begin(), diagnoses.end(), [](const auto& one) { return one.usable(); }) ? 0 : kFailed;
}

/// Both ends here: the other one is a thread.
int MeasureHere(const std::string& command, weir::tools::PerfOutput output) {
  const auto point = weir::tools::MeetingPoint::Open("127.0.0.1", 0);
  if (!point) return Fail(point.error());
  auto transport = MakeTransport(true);
  if (!transport) return Fail(transport.error());
  auto rendezvous = Rendezvous::Connect("127.0.0.1", (*point)->port());
  if (!rendezvous) return Fail(rendezvous.error());
  std::thread server([&] {
    auto client = (*point)->Accept();
    if (client) static_cast<void>(weir::tools::Serve(client->get(), transport->get()));
  });
  const int code = Measure(command, rendezvous->get(), output);
  rendezvous->reset();
  server.join();
  return code;
}

Status CheckFlags() {
  if (FLAGS_test != "both" && FLAGS_test != "bandwidth" && FLAGS_test != "latency") {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--test: found \"{}\", allowed: both, bandwidth, latency", FLAGS_test));
  }
  if (FLAGS_seconds != 0 && !(FLAGS_seconds >= 0.01 && FLAGS_seconds <= 3600)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--seconds: found {}, allowed: 0.01 to 3600, or 0", FLAGS_seconds));
  }
  for (const auto& [name, found, most] :
       {std::tuple("--step_ms", FLAGS_step_ms, 10'000), {"--low", FLAGS_low, 63}, {"--runs", FLAGS_runs, 59}}) {
    if (found < 1 || found > most) {
      return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: 1 to {}", name, found, most));
    }
  }
  if (FLAGS_in_flight < 1 || FLAGS_in_flight > 256) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--in_flight: found {}, allowed: 1 to 256", FLAGS_in_flight));
  }
  if (!(FLAGS_gb >= 0 && FLAGS_gb <= 1000)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("--gb: found {}, allowed: 0 to 1000", FLAGS_gb));
  }
  if (!(FLAGS_lasts_ms >= 0 && FLAGS_lasts_ms <= 60'000)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--lasts_ms: found {}, allowed: 0 to 60000", FLAGS_lasts_ms));
  }
  if (!(FLAGS_loss_percent >= 0 && FLAGS_loss_percent <= 50)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--loss_percent: found {}, allowed: 0 to 50", FLAGS_loss_percent));
  }
  if (FLAGS_seed < 0 || FLAGS_seed > static_cast<int>(weir::tools::kCountMax)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--seed: found {}, allowed: 0 to {}", FLAGS_seed, weir::tools::kCountMax));
  }
  return Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  gflags::SetUsageMessage(kUsage);
  gflags::SetVersionString(WEIR_VERSION);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const std::string command = argc == 2 ? argv[1] : "";
  if (command != "serve" && command != "doctor" && command != "faults" && command != "nccl-emulate" &&
      command != "nccl-doctor" && !kMeasures.contains(command)) {
    std::cerr << "weir-perf: expected one command: serve, pair, pacing, levels, coflows, soak, faults, doctor, "
                 "nccl-emulate or nccl-doctor\n"
              << kUsage << '\n';
    return kWrongUsage;
  }
  const auto output = weir::tools::PerfOutputFromName(FLAGS_output);
  if (!output) return Fail(output.error());
  if (Status status = CheckFlags(); !status.ok()) return Fail(status);
  if (command == "serve") return Serve();
  if (command == "doctor") return Examine(*output);
  if (command == "faults") return MeasureFaults(*output);
  if (command == "nccl-doctor") return ExamineNccl(*output);
  if (command == "nccl-emulate") return EmulateNccl(*output);
  if (FLAGS_server.empty()) return MeasureHere(command, *output);
  auto rendezvous = Meet(FLAGS_server);
  return rendezvous ? Measure(command, rendezvous->get(), *output) : Fail(rendezvous.error());
}
