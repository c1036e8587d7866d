#include "transport/rdma/port.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/rdma/device_rule.h"

namespace weir::transport::rdma {
namespace {

constexpr std::size_t kMaxGids = 512;

Status Refused(const std::string& name, const char* what, int error) {
  return Status(StatusCode::kUnsupported, fmt::format("{}: {}: {}", name, what, std::strerror(error)));
}

std::uint32_t Positive(int value) {
  return static_cast<std::uint32_t>(std::max(value, 0));
}

}  // namespace

Result<std::unique_ptr<Port>> Port::Open(const Verbs* verbs, ibv_device* device, std::uint8_t number,
                                         const RdmaOptions* options) {
  std::unique_ptr<Port> port(new Port(verbs, options));
  port->name_ = fmt::format("{}:{}", verbs->get_device_name(device), number);
  port->number_ = number;
  port->context_ = verbs->open_device(device);
  if (port->context_ == nullptr) return tl::unexpected(Refused(port->name_, "cannot open the device", errno));
  if (Status status = port->Examine(); !status.ok()) return tl::unexpected(status);
  port->domain_ = verbs->alloc_pd(port->context_);
  if (port->domain_ == nullptr) return tl::unexpected(Refused(port->name_, "no protection domain", errno));
  port->registrations_ = std::make_unique<Registrations>(verbs, port->domain_, port->name_);
  // Events are looked for now and then, and never waited for.
  const int flags = fcntl(port->context_->async_fd, F_GETFL);
  static_cast<void>(fcntl(port->context_->async_fd, F_SETFL, flags | O_NONBLOCK));
  return port;
}

Port::~Port() {
  registrations_.reset();
  if (domain_ != nullptr) verbs_->dealloc_pd(domain_);
  if (context_ != nullptr) verbs_->close_device(context_);
}

Status Port::Examine() {
  ibv_port_attr attributes{};
  if (const int error = verbs_->query_port(context_, number_, &attributes); error != 0) {
    return Refused(name_, "cannot ask for the state of the port", error);
  }
  if (attributes.state != IBV_PORT_ACTIVE) {
    return Status(StatusCode::kUnavailable, fmt::format("{}: the port is down", name_));
  }
  ethernet_ = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  lid_ = attributes.lid;
  mtu_ = attributes.active_mtu;
  speed_ = SpeedOf(attributes.active_speed, attributes.active_width);
  return ReadLimits();
}

Status Port::ReadLimits() {
  ibv_device_attr_ex attributes{};
  if (const int error = verbs_->query_device(context_, &attributes); error != 0) {
    return Refused(name_, "cannot ask for the limits of the device", error);
  }
  const ibv_device_attr& basic = attributes.orig_attr;
  limits_.parts = Positive(basic.max_sge);
  limits_.requests = std::min(Positive(basic.max_qp_wr), Positive(basic.max_srq_wr));
  limits_.completions = Positive(basic.max_cqe);
  const ibv_packet_pacing_caps& pacing = attributes.packet_pacing_caps;
  if ((pacing.supported_qpts & (1u << IBV_QPT_RC)) != 0) {
    limits_.rate_kbps_max = pacing.qp_rate_limit_max;
    limits_.rate_kbps_min = pacing.qp_rate_limit_min;
  }
  return Status::Ok();
}

Result<std::vector<GidEntry>> Port::ReadTable() const {
  std::vector<ibv_gid_entry> raw(kMaxGids);
  const ssize_t count = verbs_->query_gid_table(context_, raw.data(), raw.size(), 0, sizeof(ibv_gid_entry));
  if (count < 0) return tl::unexpected(Refused(name_, "cannot read the table of addresses", static_cast<int>(-count)));
  std::vector<GidEntry> entries;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (raw[i].port_num != number_) continue;
    GidEntry entry;
    entry.index = raw[i].gid_index;
    std::memcpy(entry.gid.data(), raw[i].gid.raw, entry.gid.size());
    entry.type = raw[i].gid_type == IBV_GID_TYPE_ROCE_V2   ? GidType::kRoceV2
                 : raw[i].gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::kRoceV1
                                                           : GidType::kInfiniband;
    entry.interface_index = raw[i].ndev_ifindex;
    entries.push_back(entry);
  }
  return entries;
}

Result<GidChoice> Port::Choose(const std::optional<IpAddress>& peer) {
  const auto entries = ReadTable();
  if (!entries) return tl::unexpected(entries.error());
  const auto subnet = Subnet::Parse(options_->subnet);
  if (!subnet) return tl::unexpected(subnet.error());
  auto choice = ChooseGid(
      *entries, {options_->gid_index, *subnet, peer, options_->roce_version == 1, options_->family == "AF_INET6"});
  if (!choice) return Error(choice.error().code(), fmt::format("{}: {}", name_, choice.error().message()));
  const std::lock_guard lock(mutex_);
  if (choice->why != last_choice_) Note("address " + choice->why);
  last_choice_ = choice->why;
  return choice;
}

void Port::TakeEvents() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  ibv_async_event event{};
  while (verbs_->get_async_event(context_, &event) == 0) {
    OnEvent(event);
    verbs_->ack_async_event(&event);
  }
}

void Port::OnEvent(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
      alive_.store(false, std::memory_order_relaxed);
      break;
    case IBV_EVENT_GID_CHANGE:
      last_choice_.clear();  // The next choice is noted even if it is the same.
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
      if (event.element.port_num != number_) return;
      break;
    default:
      return;  // Those of queues: their channels learn of them from completions.
  }
  Note(verbs_->event_type_str(event.event_type));
}

void Port::Note(const std::string& what) const {
  if (options_->note) options_->note(fmt::format("{}: {}", name_, what));
}

Result<std::vector<std::unique_ptr<Port>>> OpenPorts(const Verbs* verbs, const RdmaOptions* options) {
  int count = 0;
  ibv_device** list = verbs->get_device_list(&count);
  std::vector<std::unique_ptr<Port>> ports;
  std::string others;
  const DeviceRule rule(options->devices);
  for (int i = 0; list != nullptr && i < count; ++i) {
    // Every device has a first port; the second is asked for only where the first says nothing against it.
    for (std::uint8_t number = 1; number <= 2; ++number) {
      const std::string name = fmt::format("{}:{}", verbs->get_device_name(list[i]), number);
      if (!rule.Takes(verbs->get_device_name(list[i]), number)) {
        if (number == 1) others += fmt::format("{}{} (not named)", others.empty() ? "" : ", ", name);
        continue;
      }
      auto port = Port::Open(verbs, list[i], number, options);
      if (port) {
        ports.push_back(std::move(*port));
      } else if (number == 1) {
        others += fmt::format("{}{}", others.empty() ? "" : ", ", port.error().message());
      }
    }
  }
  if (list != nullptr) verbs->free_device_list(list);
  if (!ports.empty()) return ports;
  if (count == 0) {
    return Error(StatusCode::kUnsupported,
                 "no RDMA device here: a card needs its driver, and any network card can stand for one with: rdma "
                 "link add rxe0 type rxe netdev eth0");
  }
  return Error(StatusCode::kNotFound,
               fmt::format("no RDMA device fits \"{}\"; there are: {}", options->devices, others));
}

BytesPerSecond SpeedOf(std::uint8_t speed, std::uint8_t width) {
  const double lanes = width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 0;
  const double gigabits = speed == 1     ? 2.5
                          : speed == 2   ? 5
                          : speed == 4   ? 10
                          : speed == 8   ? 10
                          : speed == 16  ? 14
                          : speed == 32  ? 25
                          : speed == 64  ? 50
                          : speed == 128 ? 100
                                         : 0;
  return BitsPerSecond(lanes * gigabits * 1e9);
}

}  // namespace weir::transport::rdma
