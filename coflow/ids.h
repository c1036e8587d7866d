#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace weir {

/// A 64-bit identifier that cannot be mistaken for another kind of identifier. Tag is never defined.
/// Value 0 means "none". Trivially copyable, ordered and hashable, so it can key any container.
template <typename Tag>
struct Id {
  std::uint64_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t v) : value(v) {}
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using SiteId = Id<struct SiteTag>;        ///< A data center.
using HostId = Id<struct HostTag>;        ///< A machine; owns ports.
using LinkId = Id<struct LinkTag>;        ///< A directed link with a capacity.
using TenantId = Id<struct TenantTag>;    ///< Who pays; isolation is between tenants.
using JobId = Id<struct JobTag>;          ///< One training run.
using CoflowId = Id<struct CoflowTag>;    ///< One collective instance, push or stage send.
using FlowId = Id<struct FlowTag>;        ///< One source-destination pair of a coflow.
using ProcessId = Id<struct ProcessTag>;  ///< One training process attached to an agent; unique per agent life.
using LaneId = Id<struct LaneTag>;        ///< One (process, peer address) on a host; unique per agent life.

}  // namespace weir

template <typename Tag>
struct std::hash<weir::Id<Tag>> {
  std::size_t operator()(weir::Id<Tag> id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
