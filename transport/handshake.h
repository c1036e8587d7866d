#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "coflow/ip_address.h"
#include "coflow/status.h"
#include "transport/codec.h"
#include "transport/transport.h"

/// What handles and greetings of all backends have in common: where a listener is and what proves that it is the one,
/// and the first bytes of a connection, which every version can read. The layouts are in docs/transport.md,
/// docs/rdma-wire.md and docs/dpdk-wire.md. Decoders check what they read, as it comes from outside, and allocate only
/// for names and for an error's message. Any thread.
namespace weir::transport {

/// Where a listener is and what proves that it is the one.
struct Place {
  IpAddress address;
  std::uint16_t port = 0;
  Nonce nonce{};
  std::string identity;
};

inline constexpr std::size_t kPlaceBytes = 42 + kIdentityBytes;  ///< Of a handle; what follows is the backend's.
static_assert(kPlaceBytes <= kHandleBytes);

/// Whose handles these are.
struct HandleKind {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;  ///< The upper byte tells backends of the same magic apart, the lower one counts.
  const char* listener = "";  ///< For messages, with its article: "a TCP listener".
};

Handle EncodePlace(const HandleKind& kind, const Place& place);
/// Error kInvalidArgument: not a handle of this kind, or without a port; kProtocol: of another version, which is named.
Result<Place> DecodePlace(const HandleKind& kind, const Handle& handle);

/// Magic, version, length: the front of each greeting on a connection, readable whatever the version.
inline constexpr std::size_t kPrefixBytes = 8;

/// `length` is the greeting's, the prefix included.
void PutPrefix(std::uint32_t magic, std::uint16_t version, std::size_t length, Writer* out);
/// The version that is spoken. Error kProtocol: no greeting of `magic`.
Result<std::uint16_t> PrefixVersion(std::uint32_t magic, std::span<const std::byte, kPrefixBytes> prefix);
/// Reads over a prefix whose magic and version were checked. Error kProtocol: another length than is expected.
Status SkipPrefix(std::size_t length, Reader* in);

}  // namespace weir::transport
