#include "transport/tcp/wire.h"

#include <fmt/format.h>

namespace weir::transport::tcp {
namespace {

enum ChunkKind : std::uint8_t { kData = 1 };
enum ControlKind : std::uint8_t { kHeartbeat = 1, kPosted = 2 };

}  // namespace

Handle EncodeHandle(const Place& place) {
  Handle handle;
  Writer out(handle.bytes.data());
  out.Put(kHandleMagic);
  out.Put(kVersion);
  out.Put(static_cast<std::uint16_t>(place.address.is_v4() ? 4 : 6));
  out.Put(place.port);
  for (const std::uint8_t byte : place.address.bytes()) out.Put(byte);
  out.Put(place.nonce);
  out.PutIdentity(place.identity);
  return handle;
}

Result<Place> DecodeHandle(const Handle& handle) {
  Reader in(handle.bytes.data());
  if (in.Get<std::uint32_t>() != kHandleMagic) {
    return Error(StatusCode::kInvalidArgument, "this is no handle of a TCP listener; give the one that Listen made");
  }
  const auto version = in.Get<std::uint16_t>();
  if (version != kVersion) {
    return Error(
        StatusCode::kProtocol,
        fmt::format("the listener speaks version {}, we speak {}; run the same Weir on both hosts", version, kVersion));
  }
  const auto family = in.Get<std::uint16_t>();
  if (family != 4 && family != 6) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("address family in the listener's handle: found {}, allowed: 4, 6", family));
  }
  Place place;
  place.port = in.Get<std::uint16_t>();
  std::array<std::uint8_t, 16> address{};
  for (std::uint8_t& byte : address) byte = in.Get<std::uint8_t>();
  place.address = family == 4 ? IpAddress::V4(std::span(address).first<4>()) : IpAddress::V6(address);
  place.nonce = in.GetNonce();
  place.identity = in.GetIdentity();
  if (place.port == 0) return Error(StatusCode::kInvalidArgument, "port in the listener's handle: found 0");
  return place;
}

std::array<std::byte, kHelloBytes> EncodeHello(const Hello& hello) {
  std::array<std::byte, kHelloBytes> bytes{};
  Writer out(bytes.data());
  out.Put(kGreetMagic);
  out.Put(kVersion);
  out.Put(static_cast<std::uint16_t>(kHelloBytes));
  out.Put(hello.listener);
  out.Put(hello.channel);
  out.Put(hello.stream);
  out.Put(hello.streams);
  out.Put(std::uint16_t{0});
  out.PutIdentity(hello.identity);
  return bytes;
}

Result<std::uint16_t> GreetingVersion(std::span<const std::byte, kPrefixBytes> prefix) {
  Reader in(prefix.data());
  if (in.Get<std::uint32_t>() != kGreetMagic) {
    return Error(StatusCode::kProtocol, "what came is no greeting of Weir");
  }
  return in.Get<std::uint16_t>();
}

Result<Hello> DecodeHello(std::span<const std::byte, kHelloBytes> bytes) {
  Reader in(bytes.data() + 6);
  const auto length = in.Get<std::uint16_t>();
  if (length != kHelloBytes) {
    return Error(StatusCode::kProtocol,
                 fmt::format("length of a greeting: found {}, allowed: {}", length, kHelloBytes));
  }
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
  out.Put(kGreetMagic);
  out.Put(kVersion);
  out.Put(static_cast<std::uint16_t>(kWelcomeBytes));
  out.Put(static_cast<std::uint8_t>(welcome.verdict));
  out.Put(welcome.slots);
  out.Put(std::uint16_t{0});
  out.Put(welcome.channel);
  out.PutIdentity(welcome.identity);
  return bytes;
}

Result<Welcome> DecodeWelcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  Reader in(bytes.data());
  if (in.Get<std::uint32_t>() != kGreetMagic) {
    return Error(StatusCode::kProtocol, "what came is no greeting of Weir");
  }
  const auto version = in.Get<std::uint16_t>();
  in.Get<std::uint16_t>();
  Welcome welcome;
  const auto verdict = in.Get<std::uint8_t>();
  welcome.slots = in.Get<std::uint8_t>();
  in.Get<std::uint16_t>();
  welcome.channel = in.GetNonce();
  welcome.identity = in.GetIdentity();
  welcome.verdict = static_cast<Verdict>(verdict);
  if (version != kVersion && welcome.verdict != Verdict::kOtherVersion) {
    return Error(StatusCode::kProtocol,
                 fmt::format("{} speaks version {}, we speak {}", welcome.identity, version, kVersion));
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
