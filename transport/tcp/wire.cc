#include "transport/tcp/wire.h"

#include <fmt/format.h>

namespace weir::transport::tcp {
namespace {

enum ChunkKind : std::uint8_t { kData = 1 };
enum ControlKind : std::uint8_t { kHeartbeat = 1, kPosted = 2 };

constexpr HandleKind kHandleKind{kHandleMagic, kVersion, "a TCP listener"};

}  // namespace

Handle EncodeHandle(const Place& place) {
  return EncodePlace(kHandleKind, place);
}

Result<Place> DecodeHandle(const Handle& handle) {
  return DecodePlace(kHandleKind, handle);
}

std::array<std::byte, kHelloBytes> EncodeHello(const Hello& hello) {
  std::array<std::byte, kHelloBytes> bytes{};
  Writer out(bytes.data());
  PutPrefix(kGreetMagic, kVersion, kHelloBytes, &out);
  out.Put(hello.listener);
  out.Put(hello.channel);
  out.Put(hello.stream);
  out.Put(hello.streams);
  out.Put(std::uint16_t{0});
  out.PutIdentity(hello.identity);
  return bytes;
}

Result<std::uint16_t> GreetingVersion(std::span<const std::byte, kPrefixBytes> prefix) {
  return PrefixVersion(kGreetMagic, prefix);
}

Result<Hello> DecodeHello(std::span<const std::byte, kHelloBytes> bytes) {
  Reader in(bytes.data());
  if (Status status = SkipPrefix(kHelloBytes, &in); !status.ok()) return tl::unexpected(status);
  Hello hello;
  hello.listener = in.GetNonce();
  hello.channel = in.GetNonce();
  hello.stream = in.Get<std::uint8_t>();
  hello.streams = in.Get<std::uint8_t>();
  in.Get<std::uint16_t>();
  hello.identity = in.GetIdentity();
  if (hello.streams < 1 || hello.streams > kMaxStreams || hello.stream > hello.streams) {
    return Error(
        StatusCode::kProtocol,
        fmt::format("stream {} of {} in a greeting of {}; allowed: 0 to the number of streams, which is 1 to {}",
                    hello.stream, hello.streams, hello.identity, kMaxStreams));
  }
  return hello;
}

std::array<std::byte, kWelcomeBytes> EncodeWelcome(const Welcome& welcome) {
  std::array<std::byte, kWelcomeBytes> bytes{};
  Writer out(bytes.data());
  PutPrefix(kGreetMagic, kVersion, kWelcomeBytes, &out);
  out.Put(static_cast<std::uint8_t>(welcome.verdict));
  out.Put(welcome.slots);
  out.Put(std::uint16_t{0});
  out.Put(welcome.channel);
  out.PutIdentity(welcome.identity);
  return bytes;
}

Result<Welcome> DecodeWelcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  const auto version = GreetingVersion(bytes.first<kPrefixBytes>());
  if (!version) return tl::unexpected(version.error());
  Reader in(bytes.data() + kPrefixBytes);
  Welcome welcome;
  const auto verdict = in.Get<std::uint8_t>();
  welcome.slots = in.Get<std::uint8_t>();
  in.Get<std::uint16_t>();
  welcome.channel = in.GetNonce();
  welcome.identity = in.GetIdentity();
  welcome.verdict = static_cast<Verdict>(verdict);
  if (*version != kVersion && welcome.verdict != Verdict::kOtherVersion) {
    return Error(StatusCode::kProtocol,
                 fmt::format("{} speaks version {}, we speak {}", welcome.identity, *version, kVersion));
  }
  if (verdict > static_cast<std::uint8_t>(Verdict::kMalformed) || welcome.slots < 1 || welcome.slots > kMaxSlots) {
    return Error(StatusCode::kProtocol, fmt::format("answer {} with {} slots from {}: neither is allowed together",
                                                    verdict, welcome.slots, welcome.identity));
  }
  return welcome;
}

void EncodeChunk(const Chunk& chunk, std::span<std::byte, kChunkBytes> bytes) noexcept {
  Writer out(bytes.data());
  out.Put(std::uint32_t{kData});
  out.Put(static_cast<std::uint32_t>(chunk.tag));
  out.Put(chunk.message);
  out.Put(chunk.length);
  out.Put(chunk.offset);
  out.Put(chunk.total);
}

bool DecodeChunk(std::span<const std::byte, kChunkBytes> bytes, Chunk* chunk) noexcept {
  Reader in(bytes.data());
  if (in.Get<std::uint32_t>() != kData) return false;
  chunk->tag = static_cast<std::int32_t>(in.Get<std::uint32_t>());
  chunk->message = in.Get<std::uint32_t>();
  chunk->length = in.Get<std::uint32_t>();
  chunk->offset = in.Get<std::uint64_t>();
  chunk->total = in.Get<std::uint64_t>();
  if (chunk->total > kMaxMessageBytes || chunk->offset > chunk->total) return false;
  if (chunk->length > chunk->total - chunk->offset) return false;
  return chunk->length > 0 || chunk->total == 0;
}

std::size_t EncodeControl(const Control& control, std::span<std::byte, kControlBytesMax> bytes) noexcept {
  Writer out(bytes.data());
  out.Put(std::uint32_t{control.count == 0 ? kHeartbeat : kPosted});
  out.Put(control.count);
  for (std::uint32_t i = 0; i < control.count; ++i) {
    out.Put(static_cast<std::uint32_t>(control.slots[i].tag));
    out.Put(control.slots[i].capacity);
  }
  return kControlBytes + control.count * kPostedBytes;
}

std::size_t DecodeControl(std::span<const std::byte> bytes, Control* control) noexcept {
  if (bytes.size() < kControlBytes) return 0;
  Reader in(bytes.data());
  const auto kind = in.Get<std::uint32_t>();
  control->count = in.Get<std::uint32_t>();
  if (kind != kHeartbeat && kind != kPosted) return kControlBad;
  if (control->count > kMaxSlots || (control->count == 0) != (kind == kHeartbeat)) return kControlBad;
  const std::size_t size = kControlBytes + control->count * kPostedBytes;
  if (bytes.size() < size) return 0;
  for (std::uint32_t i = 0; i < control->count; ++i) {
    control->slots[i].tag = static_cast<std::int32_t>(in.Get<std::uint32_t>());
    control->slots[i].capacity = in.Get<std::uint64_t>();
  }
  return size;
}

}  // namespace weir::transport::tcp
