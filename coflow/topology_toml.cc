// The strict loader of topology files.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>

#include "coflow/topology.h"

namespace weir {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 12> kRateUnits = {{{"bit/s", 1.0 / 8},
                                              {"kbit/s", 1e3 / 8},
                                              {"Mbit/s", 1e6 / 8},
                                              {"Gbit/s", 1e9 / 8},
                                              {"Tbit/s", 1e12 / 8},
                                              {"B/s", 1},
                                              {"kB/s", 1e3},
                                              {"MB/s", 1e6},
                                              {"GB/s", 1e9},
                                              {"KiB/s", 1024},
                                              {"MiB/s", 1048576},
                                              {"GiB/s", 1073741824}}};
constexpr std::array<Unit, 4> kTimeUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

/// "12.5 ms" by one of `units`; nothing if it is not of that form.
std::optional<double> ParseQuantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Unit& unit : units) {
    if (rest == unit.name) return number * unit.factor;
  }
  return std::nullopt;
}

/// Reads one file into a Topology. The first error ends the reading.
class Loader {
 public:
  explicit Loader(std::string_view source) : source_(source) {}

  Result<Topology> Load(const toml::table& root) {
    if (Status status = CheckKeys(root, "the file", {"site", "host", "link"}); !status.ok()) return Fail(status);
    for (const std::string_view kind : {"site", "host", "link"}) {
      if (Status status = LoadTables(root, kind); !status.ok()) return Fail(status);
    }
    if (topology_.sites().empty()) return Error(StatusCode::kInvalidArgument, source_ + ": no [[site]] is defined");
    if (topology_.hosts().empty()) return Error(StatusCode::kInvalidArgument, source_ + ": no [[host]] is defined");
    topology_.FindPaths();
    return std::move(topology_);
  }

 private:
  static tl::unexpected<Status> Fail(Status status) { return tl::unexpected<Status>(std::move(status)); }

  Status At(const toml::node& node, StatusCode code, std::string_view message) const {
    return {code, fmt::format("{}:{}: {}", source_, node.source().begin.line, message)};
  }
  Status Bad(const toml::node& node, std::string_view message) const {
    return At(node, StatusCode::kInvalidArgument, message);
  }

  Status CheckKeys(const toml::table& table, std::string_view what, std::initializer_list<std::string_view> allowed) {
    for (const auto& [key, value] : table) {
      if (std::find(allowed.begin(), allowed.end(), key.str()) != allowed.end()) continue;
      return Bad(value,
                 fmt::format("unknown key \"{}\" in {}; allowed: {}", key.str(), what, fmt::join(allowed, ", ")));
    }
    return Status::Ok();
  }

  Status LoadTables(const toml::table& root, std::string_view kind) {
    const toml::node* node = root.get(kind);
    if (node == nullptr) return Status::Ok();
    const toml::array* array = node->as_array();
    if (array == nullptr) return Bad(*node, fmt::format("\"{0}\" must be a list of tables, written [[{0}]]", kind));
    for (const toml::node& each : *array) {
      const toml::table* table = each.as_table();
      if (table == nullptr) return Bad(each, fmt::format("\"{0}\" must be a list of tables, written [[{0}]]", kind));
      Status status = kind == "site" ? LoadSite(*table) : kind == "host" ? LoadHost(*table) : LoadLink(*table);
      if (!status.ok()) return status;
    }
    return Status::Ok();
  }

  Status Text(const toml::table& table, std::string_view key, std::string* out) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return Bad(table, fmt::format("\"{}\" is missing", key));
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty())
      return Bad(*node, fmt::format("{} = {} must be a text that is not empty", key, Shown(*node)));
    *out = *value;
    return Status::Ok();
  }

  Status Rate(const toml::table& table, std::string_view key, BytesPerSecond* out) {
    constexpr std::string_view kAllowed =
        "a text such as \"100 Mbit/s\", \"1.5 Gbit/s\" or \"128 MiB/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, "
        "kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s), from 1 kbit/s to 1 Pbit/s";
    const toml::node* node = table.get(key);
    if (node == nullptr) return Bad(table, fmt::format("\"{}\" is missing; it must be {}", key, kAllowed));
    const auto text = node->value_exact<std::string>();
    const auto rate = text ? ParseQuantity(*text, kRateUnits) : std::nullopt;
    if (!rate || *rate < kMinCapacity || *rate > kMaxCapacity) {
      return Bad(*node, fmt::format("{} = {} must be {}", key, Shown(*node), kAllowed));
    }
    *out = *rate;
    return Status::Ok();
  }

  Status Payload(const toml::table& table, double* out) {
    const toml::node* node = table.get("payload");
    if (node == nullptr) return Status::Ok();
    const auto value = node->value<double>();
    if (!value || !(*value > 0 && *value <= 1)) {
      return Bad(*node, fmt::format("payload = {} must be a number above 0 and at most 1", Shown(*node)));
    }
    *out = *value;
    return Status::Ok();
  }

  Status Delay(const toml::table& table, Nanoseconds* out) {
    const toml::node* node = table.get("delay");
    if (node == nullptr) return Status::Ok();
    const auto text = node->value_exact<std::string>();
    const auto delay = text ? ParseQuantity(*text, kTimeUnits) : std::nullopt;
    if (!delay || *delay < 0 || *delay > double{kMaxDelay}) {
      return Bad(*node,
                 fmt::format("delay = {} must be a text such as \"10 ms\" (ns, us, ms, s), 0 to 60 s", Shown(*node)));
    }
    *out = std::llround(*delay);
    return Status::Ok();
  }

  Status Site(const toml::table& table, std::string_view key, SiteId* out) {
    std::string name;
    if (Status status = Text(table, key, &name); !status.ok()) return status;
    std::vector<std::string> known;
    for (const weir::Site& site : topology_.sites()) {
      if (site.name == name) *out = site.id;
      known.push_back(site.name);
    }
    if (*out) return Status::Ok();
    return At(*table.get(key), StatusCode::kNotFound,
              fmt::format("{} = \"{}\" is not a site; defined: {}", key, name, fmt::join(known, ", ")));
  }

  static std::string Shown(const toml::node& node) {
    std::ostringstream out;
    node.visit([&out](const auto& value) { out << value; });
    return out.str();
  }

  Status LoadSite(const toml::table& table) {
    std::string name;
    if (Status status = CheckKeys(table, "[[site]]", {"name"}); !status.ok()) return status;
    if (Status status = Text(table, "name", &name); !status.ok()) return status;
    return Added(table, topology_.AddSite(std::move(name)));
  }

  Status LoadHost(const toml::table& table) {
    std::string name;
    SiteId site;
    BytesPerSecond nic = 0;
    double payload = kDefaultPayloadShare;
    std::vector<IpAddress> addresses;
    Status status = CheckKeys(table, "[[host]]", {"name", "site", "addresses", "nic", "payload"});
    if (status.ok()) status = Text(table, "name", &name);
    if (status.ok()) status = Site(table, "site", &site);
    if (status.ok()) status = Addresses(table, &addresses);
    if (status.ok()) status = Rate(table, "nic", &nic);
    if (status.ok()) status = Payload(table, &payload);
    if (!status.ok()) return status;
    return Added(table, topology_.AddHost(std::move(name), site, std::move(addresses), nic, payload));
  }

  Status Addresses(const toml::table& table, std::vector<IpAddress>* out) {
    const toml::node* node = table.get("addresses");
    if (node == nullptr) return Bad(table, "\"addresses\" is missing");
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) {
      return Bad(*node, fmt::format("addresses = {} must be a list of at least one address, such as [\"10.0.0.1\"]",
                                    Shown(*node)));
    }
    for (const toml::node& each : *array) {
      const auto text = each.value_exact<std::string>();
      if (!text) return Bad(each, fmt::format("addresses: {} must be a text", Shown(each)));
      const auto address = IpAddress::Parse(*text);
      if (!address) return Bad(each, "addresses: " + address.error().message());
      out->push_back(*address);
    }
    return Status::Ok();
  }

  Status LoadLink(const toml::table& table) {
    std::string name;
    SiteId from;
    SiteId to;
    BytesPerSecond capacity = 0;
    double payload = kDefaultPayloadShare;
    Nanoseconds delay = 0;
    Status status = CheckKeys(table, "[[link]]", {"name", "from", "to", "capacity", "payload", "delay"});
    if (status.ok()) status = Text(table, "name", &name);
    if (status.ok()) status = Site(table, "from", &from);
    if (status.ok()) status = Site(table, "to", &to);
    if (status.ok()) status = Rate(table, "capacity", &capacity);
    if (status.ok()) status = Payload(table, &payload);
    if (status.ok()) status = Delay(table, &delay);
    if (!status.ok()) return status;
    return Added(table, topology_.AddSiteLink(std::move(name), from, to, capacity, payload, delay));
  }

  template <typename T>
  Status Added(const toml::table& table, const Result<T>& result) const {
    return result ? Status::Ok() : At(table, result.error().code(), result.error().message());
  }

  const std::string source_;
  Topology topology_;
};

}  // namespace

Result<Topology> Topology::FromToml(std::string_view text, std::string_view source_name) {
  try {
    return Loader(source_name).Load(toml::parse(text, source_name));
  } catch (const toml::parse_error& error) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}:{}: not valid TOML: {}", source_name, error.source().begin.line, error.description()));
  }
}

Result<Topology> Topology::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error(StatusCode::kNotFound,
                 fmt::format("cannot open topology file \"{}\": {}", path, std::strerror(errno)));
  std::string text;
  std::array<char, 65536> chunk;
  while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() <= Topology::kMaxFileBytes) continue;
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("topology file \"{}\" is larger than {} bytes", path, Topology::kMaxFileBytes));
  }
  if (file.bad())
    return Error(StatusCode::kNotFound,
                 fmt::format("cannot read topology file \"{}\": {}", path, std::strerror(errno)));
  return FromToml(text, path);
}

}  // namespace weir
