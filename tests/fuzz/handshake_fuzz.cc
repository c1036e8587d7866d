// What handles and greetings of all backends begin with: understood or refused, and what is understood says the same
// again when it is encoded.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "coflow/check.h"
#include "transport/handshake.h"

namespace transport = weir::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint32_t kMagic = 0x4c444857;
  transport::Handle handle;
  std::copy_n(std::as_bytes(std::span(data, size)).begin(), std::min(size, handle.bytes.size()), handle.bytes.begin());
  for (const std::uint16_t version : {std::uint16_t{1}, std::uint16_t{0x0201}}) {
    const transport::HandleKind kind{kMagic, version, "a listener"};
    const auto place = transport::DecodePlace(kind, handle);
    if (!place) continue;
    WEIR_CHECK(place->port != 0 && place->identity.size() < transport::kIdentityBytes);
    const auto again = transport::DecodePlace(kind, transport::EncodePlace(kind, *place));
    WEIR_CHECK(again && again->address == place->address && again->port == place->port);
    WEIR_CHECK(again->nonce == place->nonce && again->identity == place->identity);
  }
  const auto prefix = std::span(handle.bytes).first<transport::kPrefixBytes>();
  const auto version = transport::PrefixVersion(kMagic, prefix);
  transport::Reader in(prefix.data());
  constexpr std::size_t kLength = 76;
  if (version && transport::SkipPrefix(kLength, &in).ok()) {
    std::array<std::byte, transport::kPrefixBytes> same{};
    transport::Writer out(same.data());
    transport::PutPrefix(kMagic, *version, kLength, &out);
    WEIR_CHECK(std::equal(same.begin(), same.end(), prefix.begin()));
  }
  return 0;
}
