// RDMA: how it is made, and what the doctor looks at.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <iostream>

#include "tools/weir-perf/backends.h"
#include "transport/rdma/port.h"
#include "transport/rdma/rdma_transport.h"
#include "transport/transport.h"

namespace weir::tools {
namespace {

using Weight = Finding::Weight;

constexpr std::array<std::string_view, 5> kKeys{"devices", "gid", "window_kb", "window_us", "classes"};

/// "160;96;32": a traffic class byte for each level from 0 on.
Result<std::vector<std::uint8_t>> Classes(const std::string& text) {
  std::vector<std::uint8_t> classes;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const auto one = transport::KeyValues::Parse("--options", "classes=" + text.substr(at, end - at));
    if (!one) return tl::unexpected(one.error());
    const auto value = one->Number("classes", 0, 0, 255);
    if (!value) return tl::unexpected(value.error());
    classes.push_back(static_cast<std::uint8_t>(*value));
    at = end + 1;
  }
  return classes;
}

Result<transport::RdmaOptions> Options(const BackendSettings& settings) {
  if (Status status = settings.options.AllowOnly(kKeys); !status.ok()) return tl::unexpected(status);
  auto options = transport::RdmaOptionsFromEnvironment();
  if (!options) return options;
  if (!settings.interfaces.empty()) options->interfaces = settings.interfaces;
  if (settings.streams != 0) options->queue_pairs = settings.streams;
  if (settings.stripe_bytes != 0) options->stripe_bytes = settings.stripe_bytes;
  if (settings.dead_after != 0) options->dead_after = settings.dead_after;
  if (settings.options.Has("devices")) options->devices = settings.options.Text("devices");
  const auto gid = settings.options.Number("gid", 0, 0, 255);
  const auto window_kb = settings.options.Number("window_kb", options->window_bytes / 1024, 4, 1 << 30);
  const auto window_us = settings.options.Number(
      "window_us", static_cast<std::uint64_t>(options->window_time / kMicrosecond), 10, 10'000'000);
  for (const auto* one : {&gid, &window_kb, &window_us}) {
    if (!*one) return tl::unexpected(one->error());
  }
  if (settings.options.Has("gid")) options->gid_index = static_cast<int>(*gid);
  options->window_bytes = *window_kb * 1024;
  options->window_time = static_cast<Nanoseconds>(*window_us) * kMicrosecond;
  if (settings.options.Has("classes")) {
    auto classes = Classes(settings.options.Text("classes"));
    if (!classes) return tl::unexpected(classes.error());
    options->traffic_classes = std::move(*classes);
  }
  return options;
}

Result<std::unique_ptr<transport::Transport>> Make(const BackendSettings& settings) {
  auto options = Options(settings);
  if (!options) return tl::unexpected(options.error());
  options->note = [](const std::string& note) { std::cerr << "weir-perf: " << note << '\n'; };
  return transport::MakeRdmaTransport(*options);
}

/// Memory that a device reads or writes stays where it is.
Finding LockedMemory() {
  constexpr rlim_t kEnough = rlim_t{8} << 30;
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Weight::kGood, "memlock", "no limit", ""};
  const bool enough = limit.rlim_cur >= kEnough;
  return {enough ? Weight::kGood : Weight::kAdvice, "memlock", fmt::format("at most {} KiB", limit.rlim_cur / 1024),
          enough ? "" : "memory that is registered counts: ulimit -l unlimited, or LimitMEMLOCK=infinity of a service"};
}

void ExaminePort(transport::rdma::Port* port, std::vector<Finding>* findings) {
  const auto choice = port->Choose({});
  if (!choice) {
    findings->push_back(
        {Weight::kMissing, port->name(), choice.error().message(),
         "give the network interface an IP address, or name an entry that is there: NCCL_IB_GID_INDEX"});
    return;
  }
  findings->push_back({Weight::kGood, port->name(), "up, address " + choice->why, ""});
  const int mtu = 128 << port->mtu();
  findings->push_back({mtu >= 4096 ? Weight::kGood : Weight::kAdvice, port->name() + " MTU", fmt::to_string(mtu),
                       mtu >= 4096 ? "" : "4096 costs less: the network interface needs an MTU of 4200 or more"});
  const std::uint32_t kbps = port->limits().rate_kbps_max;
  findings->push_back({Weight::kGood, port->name() + " pacing",
                       kbps > 0 ? fmt::format("by the device, up to {} Mbit/s", kbps / 1000) : "by software", ""});
  findings->push_back({Weight::kGood, port->name() + " DMA-BUF", port->takes_dma_buf() ? "taken" : "not taken", ""});
}

std::vector<Finding> Examine(const BackendSettings& settings) {
  const auto options = Options(settings);
  if (!options) return {{Weight::kMissing, "settings", options.error().message(), "correct the flag or variable"}};
  const auto verbs = transport::rdma::LoadVerbs();
  if (!verbs) return {{Weight::kMissing, "libibverbs", verbs.error().message(), "apt-get install ibverbs-providers"}};
  std::vector<Finding> findings{{Weight::kGood, "libibverbs", "loaded", ""}};
  const auto ports = transport::rdma::OpenPorts(*verbs, &*options);
  if (!ports) {
    findings.push_back({Weight::kMissing, "devices", ports.error().message(),
                        "load the driver of the card and bring its port up, or name another with NCCL_IB_HCA"});
    return findings;
  }
  findings.push_back(LockedMemory());
  for (const auto& port : *ports) ExaminePort(port.get(), &findings);
  return findings;
}

}  // namespace

Backend RdmaBackend() {
  FaultSupport faults;
  faults.no_link =
      "an RDMA device cannot be put on the link that weir-perf makes; name a program that cuts the one between two "
      "devices, by its switch or tc: --link_program";
  return {"rdma", "verbs: InfiniBand and RoCE", Make, Examine, faults};
}

}  // namespace weir::tools
