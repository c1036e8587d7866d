// Everything that comes over a TCP connection of the transport, and handles: understood or refused, and what is
// understood stays within its limits and says the same again when it is encoded.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "coflow/check.h"
#include "transport/tcp/wire.h"

namespace tcp = weir::transport::tcp;

namespace {

/// The front of the input, filled up with zeros.
template <std::size_t kSize>
std::array<std::byte, kSize> Front(std::span<const std::byte> input) {
  std::array<std::byte, kSize> bytes{};
  std::copy_n(input.begin(), std::min(input.size(), kSize), bytes.begin());
  return bytes;
}

void Greetings(std::span<const std::byte> input) {
  static_cast<void>(tcp::GreetingVersion(Front<tcp::kPrefixBytes>(input)));
  if (const auto hello = tcp::DecodeHello(Front<tcp::kHelloBytes>(input))) {
    WEIR_CHECK(hello->streams >= 1 && hello->streams <= 16 && hello->stream <= hello->streams);
    WEIR_CHECK(hello->identity.size() < tcp::kIdentityBytes);
    const auto again = tcp::DecodeHello(tcp::EncodeHello(*hello));
    WEIR_CHECK(again && again->identity == hello->identity && again->channel == hello->channel);
  }
  if (const auto welcome = tcp::DecodeWelcome(Front<tcp::kWelcomeBytes>(input))) {
    WEIR_CHECK(welcome->slots >= 1 && welcome->slots <= weir::transport::kMaxSlots);
  }
  if (const auto place = tcp::DecodeHandle({Front<weir::transport::kHandleBytes>(input)})) {
    const auto again = tcp::DecodeHandle(tcp::EncodeHandle(*place));
    WEIR_CHECK(again && again->address == place->address && again->port == place->port);
  }
}

void Frames(std::span<const std::byte> input) {
  tcp::Chunk chunk;
  if (tcp::DecodeChunk(Front<tcp::kChunkBytes>(input), &chunk)) {
    WEIR_CHECK(chunk.total <= weir::transport::kMaxMessageBytes);
    WEIR_CHECK(chunk.offset <= chunk.total && chunk.length <= chunk.total - chunk.offset);
  }
  tcp::Control control;
  while (true) {
    const std::size_t size = tcp::DecodeControl(input, &control);
    if (size == 0 || size == tcp::kControlBad) return;
    WEIR_CHECK(size <= input.size() && control.count <= weir::transport::kMaxSlots);
    input = input.subspan(size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  Greetings(input);
  Frames(input);
  return 0;
}
