#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coflow/ip_address.h"
#include "coflow/status.h"

namespace weir::transport {

/// A network interface that is up, by one of its addresses.
struct Interface {
  std::string name;
  unsigned index = 0;  ///< The kernel's.
  IpAddress address;
};

inline constexpr std::size_t kMaxInterfaces = 64;

/// All addresses of all interfaces that are up. Error kUnsupported when the system does not say.
Result<std::vector<Interface>> ListInterfaces();

/// Whether what is sent to `address` stays on this host, whose interfaces are `found`. Pure.
bool IsWithinHost(const std::vector<Interface>& found, const IpAddress& address);

/// Those of `found` that the two rules take (see TcpOptions::interfaces and family), one address each: IPv4 before
/// IPv6, global before link-local; at most kMaxInterfaces. Error kNotFound with the rule and the interfaces there are;
/// kInvalidArgument for an unknown family. Pure.
Result<std::vector<Interface>> SelectInterfaces(const std::vector<Interface>& found, std::string_view rule,
                                                std::string_view family);

}  // namespace weir::transport
