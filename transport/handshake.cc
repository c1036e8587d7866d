#include "transport/handshake.h"

#include <fmt/format.h>

#include <array>

namespace weir::transport {
namespace {

Status WrongHandle(const std::string& why) {
  return Status(StatusCode::kInvalidArgument, why);
}

}  // namespace

Handle EncodePlace(const HandleKind& kind, const Place& place) {
  Handle handle;
  Writer out(handle.bytes.data());
  out.Put(kind.magic);
  out.Put(kind.version);
  out.Put(static_cast<std::uint16_t>(place.address.is_v4() ? 4 : 6));
  out.Put(place.port);
  for (const std::uint8_t byte : place.address.bytes()) out.Put(byte);
  out.Put(place.nonce);
  out.PutIdentity(place.identity);
  return handle;
}

Result<Place> DecodePlace(const HandleKind& kind, const Handle& handle) {
  Reader in(handle.bytes.data());
  const auto magic = in.Get<std::uint32_t>();
  const auto version = in.Get<std::uint16_t>();
  if (magic != kind.magic || version >> 8 != kind.version >> 8) {
    return tl::unexpected(
        WrongHandle(fmt::format("this is no handle of {}; give the one that Listen made", kind.listener)));
  }
  if (version != kind.version) {
    return Error(StatusCode::kProtocol,
                 fmt::format("the listener speaks version {}, we speak {}; run the same Weir on both hosts",
                             version & 0xff, kind.version & 0xff));
  }
  const auto family = in.Get<std::uint16_t>();
  if (family != 4 && family != 6) {
    return tl::unexpected(
        WrongHandle(fmt::format("address family in the listener's handle: found {}, allowed: 4, 6", family)));
  }
  Place place;
  place.port = in.Get<std::uint16_t>();
  std::array<std::uint8_t, 16> address{};
  for (std::uint8_t& byte : address) byte = in.Get<std::uint8_t>();
  place.address = family == 4 ? IpAddress::V4(std::span(address).first<4>()) : IpAddress::V6(address);
  place.nonce = in.GetNonce();
  place.identity = in.GetIdentity();
  if (place.port == 0) {
    return tl::unexpected(WrongHandle("port in the listener's handle: found 0, allowed: 1 to 65535; listen again"));
  }
  return place;
}

void PutPrefix(std::uint32_t magic, std::uint16_t version, std::size_t length, Writer* out) {
  out->Put(magic);
  out->Put(version);
  out->Put(static_cast<std::uint16_t>(length));
}

Result<std::uint16_t> PrefixVersion(std::uint32_t magic, std::span<const std::byte, kPrefixBytes> prefix) {
  Reader in(prefix.data());
  if (in.Get<std::uint32_t>() != magic) {
    return Error(StatusCode::kProtocol, "what came is no greeting of Weir for this backend");
  }
  return in.Get<std::uint16_t>();
}

Status SkipPrefix(std::size_t length, Reader* in) {
  in->Get<std::uint32_t>();
  in->Get<std::uint16_t>();
  const auto found = in->Get<std::uint16_t>();
  if (found == length) return Status::Ok();
  return Status(StatusCode::kProtocol, fmt::format("length of a greeting: found {}, allowed: {}", found, length));
}

}  // namespace weir::transport
