#include "tools/weir-perf/emulate/nccl_doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/weir-perf/emulate/feed.h"
#include "tools/weir-perf/emulate/net.h"

namespace weir::tools::emulate {
namespace {

constexpr const char* kOurName = "Weir";
constexpr const char* kHowToName =
    "LD_LIBRARY_PATH=FOLDER:$LD_LIBRARY_PATH NCCL_NET_PLUGIN=weir, FOLDER being where libnccl-net-weir.so is";
constexpr std::string_view kStatic = "STATIC_PLUGIN";
constexpr rlim_t kDescriptorsWanted = 4096;

/// Which versions of the interfaces an NCCL looks for.
struct Release {
  const char* name;
  std::vector<int> net;
  std::vector<int> profiler;
};

const std::vector<Release>& Releases() {
  static const std::vector<Release> releases = {
      {"2.18", {6, 5, 4}, {}},
      {"2.19", {7, 6, 5}, {}},
      {"2.20 to 2.22", {8, 7, 6, 5}, {}},
      {"2.23", {8, 7, 6, 5}, {1}},
      {"2.24, 2.25", {9, 8, 7, 6, 5}, {2, 1}},
      {"2.26", {10, 9, 8, 7, 6}, {3, 2, 1}},
      {"2.27", {10, 9, 8, 7, 6}, {4, 3, 2, 1}},
      {"2.28", {11, 10, 9, 8, 7, 6}, {5, 4, 3, 2, 1}},
      {"2.29", {11, 10, 9, 8, 7, 6}, {6, 5, 4, 3, 2, 1}},
      {"2.30", {12, 11, 10, 9, 8, 7, 6}, {6, 5, 4, 3, 2, 1}},
  };
  return releases;
}

Finding Good(std::string what, std::string found) {
  return {Finding::Weight::kGood, std::move(what), std::move(found), ""};
}

Finding Advice(std::string what, std::string found, std::string advice) {
  return {Finding::Weight::kAdvice, std::move(what), std::move(found), std::move(advice)};
}

Finding Missing(std::string what, std::string found, std::string advice) {
  return {Finding::Weight::kMissing, std::move(what), std::move(found), std::move(advice)};
}

/// Empty: unset.
std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// The parts of a list; one empty part for nothing.
std::vector<std::string> Parts(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == ',') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::vector<int> VersionsIn(void* library, const char* symbol, int oldest, int newest) {
  std::vector<int> versions;
  for (int version = newest; version >= oldest; --version) {
    if (dlsym(library, fmt::format("{}_v{}", symbol, version).c_str()) != nullptr) versions.push_back(version);
  }
  return versions;
}

std::string PathOf(void* library) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name != nullptr ? map->l_name : "?";
}

struct Opened {
  void* library = nullptr;  ///< Null: none of the names.
  std::string refusals;     ///< What the loader said.
};

Opened OpenFirst(const std::vector<std::string>& names) {
  Opened opened;
  for (const std::string& name : names) {
    opened.library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened.library != nullptr) return opened;
    opened.refusals += (opened.refusals.empty() ? "" : "; ") + std::string(dlerror());
  }
  return opened;
}

/// The plugin that NCCL would take; null if it would be its own network.
void* DiagnoseLibrary(Diagnosis* out) {
  const std::string value = Variable("NCCL_NET_PLUGIN");
  if (value == "none") {
    out->findings.push_back(Missing("NCCL_NET_PLUGIN", "none: NCCL loads no plugin", kHowToName));
    return nullptr;
  }
  const std::vector<std::string> parts = Parts(value);
  if (parts.size() > 1) {
    out->findings.push_back(Advice("NCCL_NET_PLUGIN", fmt::format("a list of {}", parts.size()),
                                   "NCCL before 2.27.3 takes it for one name: name one plugin there"));
  }
  for (const std::string& part : parts) {
    if (!part.empty() && part.size() <= kStatic.size() && strncasecmp(part.c_str(), kStatic.data(), part.size()) == 0) {
      out->findings.push_back(Missing("NCCL_NET_PLUGIN=" + part,
                                      "to NCCL this means the program itself and what it is linked with", kHowToName));
      continue;
    }
    const std::vector<std::string> names = NamesTried("net", part);
    const Opened opened = OpenFirst(names);
    const std::string what = value.empty() ? "NCCL_NET_PLUGIN is not set" : "NCCL_NET_PLUGIN=" + part;
    if (opened.library == nullptr) {
      out->findings.push_back(Missing(what, "NCCL tries " + Join(names) + ": " + opened.refusals, kHowToName));
      continue;
    }
    out->findings.push_back(Good(what, PathOf(opened.library)));
    return opened.library;
  }
  return nullptr;
}

void DiagnoseFilter(const std::string& name, Diagnosis* out) {
  const std::string wanted = Variable("NCCL_NET");
  if (wanted.empty()) {
    out->findings.push_back(Advice("NCCL_NET",
                                   "not set: NCCL goes on to its own network without a word if the plugin fails",
                                   "NCCL_NET=" + name + " makes it say so and end"));
  } else if (strcasecmp(wanted.c_str(), name.c_str()) == 0) {
    out->findings.push_back(Good("NCCL_NET", wanted));
  } else {
    out->findings.push_back(
        Missing("NCCL_NET", wanted + ": NCCL uses no plugin but one of this name", "unset it, or NCCL_NET=" + name));
  }
}

/// Whether the network plugin's own profiler is taken.
bool DiagnoseProfiler(Diagnosis* out) {
  const std::string value = Variable("NCCL_PROFILER_PLUGIN");
  if (value == "none") {
    out->findings.push_back(
        Advice("NCCL_PROFILER_PLUGIN", "none: coflows are known by less than the profiler", "unset it"));
    return false;
  }
  const Opened opened = OpenFirst(NamesTried("profiler", value));
  if (opened.library == nullptr) {
    out->findings.push_back(Good("profiler", "no other one is found, so NCCL takes the network plugin's"));
    return true;
  }
  const bool ours = dlsym(opened.library, "ncclNetPlugin_v12") != nullptr;
  out->findings.push_back(
      ours ? Good("profiler", PathOf(opened.library))
           : Advice("profiler", PathOf(opened.library) + " takes the place of the network plugin's",
                    "coflows are known by what NCCL says of operations, or by pauses; for more, let NCCL not find it"));
  return ours;
}

/// The profiler that ours passes everything on to.
void DiagnoseChain(bool profiles, Diagnosis* out) {
  const std::string value = Variable("WEIR_NCCL_PROFILER");
  if (value.empty()) return;
  const std::string what = "WEIR_NCCL_PROFILER=" + value;
  if (!profiles) {
    out->findings.push_back(Advice(what, "not told anything, as NCCL does not take our profiler", "see above"));
    return;
  }
  const std::vector<std::string> names = NamesTried("profiler", value);
  const Opened opened = OpenFirst(names);
  const std::vector<int> versions =
      opened.library == nullptr ? std::vector<int>() : VersionsIn(opened.library, "ncclProfiler", 3, 6);
  if (versions.empty()) {
    out->findings.push_back(Advice(
        what, opened.library == nullptr ? opened.refusals : PathOf(opened.library) + " has no ncclProfiler_v3 to _v6",
        "name a file, or X of a libnccl-profiler-X.so in the library path"));
    return;
  }
  out->findings.push_back(Good(what, fmt::format("{}, v{}, is told too, by NCCL that has as high a version",
                                                 PathOf(opened.library), versions[0])));
}

const char* KnownBy(int net, int profiler) {
  if (net >= 10 && profiler >= 3) return "the profiler";
  return net >= 11 ? "what NCCL says of operations" : "pauses";
}

Diagnosis DiagnoseVersions(void* library, bool profiles) {
  Diagnosis out{"versions", "what each NCCL takes from the library", {}};
  const std::vector<int> net = VersionsIn(library, "ncclNetPlugin", 4, 12);
  const std::vector<int> profiler = VersionsIn(library, "ncclProfiler", 1, 6);
  for (const Release& release : Releases()) {
    const int taken = HighestOfBoth(release.net, net);
    const int profiled = profiles ? HighestOfBoth(release.profiler, profiler) : 0;
    const std::string what = fmt::format("NCCL {}", release.name);
    if (taken == 0) {
      out.findings.push_back(Advice(what, "nothing: it goes on to its own network", "a plugin of another release"));
      continue;
    }
    out.findings.push_back(Good(what, fmt::format("net v{}, {}; coflows are known by {}", taken,
                                                  profiled == 0 ? "no profiler" : fmt::format("profiler v{}", profiled),
                                                  KnownBy(taken, profiled))));
  }
  return out;
}

/// The NCCL that this shell's programs find, if it is in the library path at all.
void DiagnoseNcclItself(Diagnosis* out) {
  void* nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  using GetVersion = int (*)(int*);
  const auto get = nccl == nullptr ? nullptr : reinterpret_cast<GetVersion>(dlsym(nccl, "ncclGetVersion"));
  int code = 0;
  if (get == nullptr || get(&code) != 0) {
    out->findings.push_back(
        Advice("libnccl.so.2", "not in the library path", "frameworks bring their own; NCCL_DEBUG=VERSION shows it"));
    return;
  }
  out->findings.push_back(Good("libnccl.so.2", fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100)));
}

std::string* said = nullptr;
std::string* said_transport = nullptr;

__attribute__((format(printf, 5, 6))) void Keep(abi::LogLevel level, unsigned long, const char*, int,
                                                const char* format, ...) {
  std::array<char, 1024> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::string_view line(text.data());
  if (const std::size_t at = line.find(", transport "); said_transport != nullptr && at != std::string_view::npos) {
    const std::size_t begin = at + std::string_view(", transport ").size();
    *said_transport = line.substr(begin, line.find(',', begin) - begin);
  }
  if (said != nullptr && level == abi::LogLevel::kWarn) *said += (said->empty() ? "" : "; ") + std::string(text.data());
}

/// Begins the plugin as NCCL does, and asks for its devices.
void DiagnoseBeginning(Net* net, Diagnosis* out) {
  std::string warnings;
  std::string transport;
  said = &warnings;
  said_transport = &transport;
  void* context = nullptr;
  const abi::Result begun = net->Init(&context, 1, Keep, Feed::Callback);
  int devices = 0;
  if (begun == abi::Result::kSuccess && net->Devices(&devices) != abi::Result::kSuccess) devices = 0;
  if (devices < 1) {
    out->findings.push_back(Missing("init", warnings.empty() ? "no device" : warnings,
                                    "see NCCL_SOCKET_IFNAME and the variables in docs/nccl.md"));
  }
  if (!transport.empty()) out->findings.push_back(Good("transport", transport));
  for (int device = 0; device < devices; ++device) {
    Net::Properties properties;
    if (net->GetProperties(device, &properties) != abi::Result::kSuccess) continue;
    out->findings.push_back(
        Good("device " + properties.name,
             fmt::format("{} Mbit/s, receives grouped: {}, memory: {}", properties.speed_mbit, properties.receives_max,
                         properties.pointer_kinds == abi::kPointerHost ? "host" : "host and GPU")));
  }
  if (begun == abi::Result::kSuccess) net->Finalize(context);
  said = nullptr;
  said_transport = nullptr;
}

Diagnosis DiagnoseHost(Net* net) {
  Diagnosis out{"host", "what the plugin finds here", {}};
  DiagnoseNcclItself(&out);
  DiagnoseBeginning(net, &out);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string found = fmt::format("{}", limit.rlim_cur);
  out.findings.push_back(
      limit.rlim_cur >= kDescriptorsWanted
          ? Good("open files", found)
          : Advice("open files", found, fmt::format("a connection takes up to 17: ulimit -n {}", kDescriptorsWanted)));
  return out;
}

bool SomebodyListensAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool listens = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  return listens;
}

Diagnosis DiagnoseAgent() {
  Diagnosis out{"agent", "who manages the job", {}};
  if (Variable("LD_PRELOAD").find("libweir-preload.so") != std::string::npos) {
    out.findings.push_back(Advice("LD_PRELOAD", "libweir-preload.so manages the process by its writes",
                                  "leave it out where NCCL is all that sends"));
  }
  const std::string job = Variable("WEIR_JOB");
  out.findings.push_back(job.empty()
                             ? Advice("WEIR_JOB", "not set: without it and a launcher's name, the job is not managed",
                                      "the same name for all processes of the job")
                             : Good("WEIR_JOB", job));
  std::string path = Variable("WEIR_AGENT_SOCKET");
  if (path.empty()) path = "/run/weir/agent.sock";
  out.findings.push_back(SomebodyListensAt(path)
                             ? Good("agent", "listens at " + path)
                             : Advice("agent", "nobody listens at " + path,
                                      "start weir-agent, or set WEIR_AGENT_SOCKET; until then the job is not managed"));
  return out;
}

}  // namespace

std::vector<std::string> NamesTried(std::string_view kind, std::string_view value) {
  const std::string stem = fmt::format("libnccl-{}", kind);
  if (value.empty()) return {stem + ".so"};
  std::vector<std::string> names = {std::string(value)};
  const bool is_file = value.starts_with("lib") && value.ends_with(".so");
  if (value.find('/') == std::string_view::npos && !is_file) names.push_back(fmt::format("{}-{}.so", stem, value));
  return names;
}

int HighestOfBoth(const std::vector<int>& knows, const std::vector<int>& has) {
  int highest = 0;
  for (const int version : knows) {
    if (std::find(has.begin(), has.end(), version) != has.end()) highest = std::max(highest, version);
  }
  return highest;
}

std::vector<Diagnosis> DiagnoseNccl() {
  std::vector<Diagnosis> all = {{"library", "the network plugin that NCCL loads", {}}};
  void* const library = DiagnoseLibrary(&all.front());
  if (library == nullptr) return all;
  auto net = Net::Open(PathOf(library), 0);
  if (!net) {
    all.front().findings.push_back(Missing("interface", net.error().message(), kHowToName));
    return all;
  }
  const std::string name = (*net)->name();
  all.front().findings.push_back(name == kOurName ? Good("name", name)
                                                  : Missing("name", name + " is not Weir's", kHowToName));
  DiagnoseFilter(name, &all.front());
  const bool profiles = DiagnoseProfiler(&all.front());
  DiagnoseChain(profiles, &all.front());
  all.push_back(DiagnoseVersions(library, profiles));
  all.push_back(DiagnoseHost(net->get()));
  all.push_back(DiagnoseAgent());
  return all;
}

}  // namespace weir::tools::emulate
