#include "transport/dpdk/wire.h"

#include <fmt/format.h>

#include <utility>

namespace weir::transport::dpdk {
namespace {

/// Greetings are padded to this, so that an answer is never longer than what it answers.
constexpr std::size_t kGreetingUsed = kHeaderBytes + 16 + 16 + 8 + 2 + 1 + 1 + kIdentityBytes;
static_assert(kGreetingUsed <= kGreetingBytes);
constexpr std::size_t kRoomBytes = 12;
constexpr HandleKind kHandleKind{kHandleMagic, kHandleVersion, "a DPDK listener"};

void PutHeader(Writer* out, Kind kind, std::uint8_t flags, std::size_t length, std::uint64_t to) noexcept {
  out->Put(kMagic);
  out->Put(kVersion);
  out->Put(static_cast<std::uint8_t>(kind));
  out->Put(static_cast<std::uint16_t>(length));
  out->Put(flags);
  out->Put(std::uint8_t{0});
  out->Put(to);
}

void PutGrant(Writer* out, const Grant& grant) noexcept {
  out->Put(grant.count);
  for (std::size_t i = 0; i < grant.count; ++i) {
    out->Put(static_cast<std::uint32_t>(grant.rooms[i].tag));
    out->Put(grant.rooms[i].capacity);
  }
}

bool GetGrant(std::span<const std::byte>* rest, Grant* grant) noexcept {
  if (rest->empty()) return false;
  Reader in(rest->data());
  grant->count = in.Get<std::uint8_t>();
  const std::size_t size = 1 + grant->count * kRoomBytes;
  if (grant->count < 1 || grant->count > kMaxSlots || rest->size() < size) return false;
  for (std::size_t i = 0; i < grant->count; ++i) {
    grant->rooms[i].tag = static_cast<std::int32_t>(in.Get<std::uint32_t>());
    grant->rooms[i].capacity = in.Get<std::uint64_t>();
  }
  *rest = rest->subspan(size);
  return true;
}

}  // namespace

Handle EncodeHandle(const Place& place) {
  Handle handle = EncodePlace(kHandleKind, place);
  Writer(handle.bytes.data() + kPlaceBytes).Put(place.mac);
  return handle;
}

Result<Place> DecodeHandle(const Handle& handle) {
  auto found = DecodePlace(kHandleKind, handle);
  if (!found) return tl::unexpected(found.error());
  return Place{std::move(*found), Reader(handle.bytes.data() + kPlaceBytes).GetBytes<6>()};
}

std::size_t EncodeGreeting(Kind kind, std::uint64_t to, const Greeting& greeting, std::byte* bytes) noexcept {
  std::fill_n(bytes, kGreetingBytes, std::byte{0});
  Writer out(bytes);
  PutHeader(&out, kind, 0, kGreetingBytes, to);
  out.Put(greeting.listener);
  out.Put(greeting.channel);
  out.Put(greeting.from);
  out.Put(greeting.packet_max);
  out.Put(static_cast<std::uint8_t>(greeting.verdict));
  out.Put(greeting.slots);
  out.PutIdentity(greeting.identity);
  return kGreetingBytes;
}

std::size_t EncodeData(std::uint64_t to, std::uint8_t flags, const Data& data, std::byte* bytes) noexcept {
  Writer out(bytes);
  PutHeader(&out, Kind::kData, flags, kDataBytes + data.size, to);
  out.Put(data.sequence);
  out.Put(data.grants_seen);
  out.Put(data.receive);
  out.Put(data.slot);
  out.Put(std::uint8_t{0});
  out.Put(data.size);
  out.Put(data.offset);
  out.Put(data.total);
  out.Put(data.sent_at);
  return kDataBytes;
}

std::size_t EncodePing(std::uint64_t to, std::uint8_t flags, const Ping& ping, std::byte* bytes) noexcept {
  Writer out(bytes);
  PutHeader(&out, Kind::kPing, flags, kPingBytes, to);
  out.Put(ping.grants_seen);
  out.Put(std::uint32_t{0});
  return kPingBytes;
}

std::size_t EncodeAck(Kind kind, std::uint64_t to, std::uint8_t flags, const Ack& ack, std::size_t room,
                      std::byte* bytes, std::size_t* grants_written) noexcept {
  std::size_t length = kAckBytes + std::size_t{ack.words} * 8;
  std::uint8_t grants = 0;
  while (grants < ack.grants && length + 1 + ack.grant[grants].count * kRoomBytes <= room) {
    length += 1 + ack.grant[grants++].count * kRoomBytes;
  }
  Writer out(bytes);
  PutHeader(&out, kind, flags, length, to);
  out.Put(ack.cumulative);
  out.Put(ack.start);
  out.Put(ack.congested);
  out.Put(ack.arrived);
  out.Put(ack.echo);
  out.Put(ack.delay);
  out.Put(ack.first_grant);
  out.Put(ack.words);
  out.Put(grants);
  out.Put(std::uint16_t{0});
  for (std::size_t i = 0; i < ack.words; ++i) out.Put(ack.map[i]);
  for (std::size_t i = 0; i < grants; ++i) PutGrant(&out, ack.grant[i]);
  *grants_written = grants;
  return length;
}

HeaderVerdict DecodeHeader(std::span<const std::byte> packet, Header* header) noexcept {
  if (packet.size() < kHeaderBytes) return HeaderVerdict::kNotOurs;
  Reader in(packet.data());
  if (in.Get<std::uint16_t>() != kMagic) return HeaderVerdict::kNotOurs;
  const auto version = in.Get<std::uint8_t>();
  const auto kind = in.Get<std::uint8_t>();
  header->length = in.Get<std::uint16_t>();
  header->flags = in.Get<std::uint8_t>();
  in.Get<std::uint8_t>();
  header->to = in.Get<std::uint64_t>();
  header->kind = static_cast<Kind>(kind);
  if (version != kVersion) return HeaderVerdict::kOtherVersion;
  const bool known = kind >= static_cast<std::uint8_t>(Kind::kHello) && kind <= static_cast<std::uint8_t>(Kind::kClose);
  return known && header->length == packet.size() ? HeaderVerdict::kOk : HeaderVerdict::kMalformed;
}

Result<Greeting> DecodeGreeting(std::span<const std::byte> packet) {
  if (packet.size() != kGreetingBytes) {
    return Error(StatusCode::kProtocol,
                 fmt::format("length of a greeting: found {}, allowed: {}", packet.size(), kGreetingBytes));
  }
  Reader in(packet.data() + kHeaderBytes);
  Greeting greeting;
  greeting.listener = in.GetNonce();
  greeting.channel = in.GetNonce();
  greeting.from = in.Get<std::uint64_t>();
  greeting.packet_max = in.Get<std::uint16_t>();
  const auto verdict = in.Get<std::uint8_t>();
  greeting.slots = in.Get<std::uint8_t>();
  greeting.identity = in.GetIdentity();
  greeting.verdict = static_cast<Verdict>(verdict);
  const bool welcome = greeting.verdict == Verdict::kWelcome;
  if (verdict > static_cast<std::uint8_t>(Verdict::kMalformed) || greeting.slots < 1 || greeting.slots > kMaxSlots ||
      (welcome && (greeting.from == 0 || greeting.packet_max < kFrameBytesMin / 2))) {
    return Error(StatusCode::kProtocol,
                 fmt::format("greeting of {} with verdict {}, {} slots and packets of {} bytes: not allowed together",
                             greeting.identity, verdict, greeting.slots, greeting.packet_max));
  }
  return greeting;
}

bool DecodeData(std::span<const std::byte> packet, Data* data) noexcept {
  if (packet.size() < kDataBytes) return false;
  Reader in(packet.data() + kHeaderBytes);
  data->sequence = in.Get<std::uint32_t>();
  data->grants_seen = in.Get<std::uint32_t>();
  data->receive = in.Get<std::uint32_t>();
  data->slot = in.Get<std::uint8_t>();
  in.Get<std::uint8_t>();
  data->size = in.Get<std::uint16_t>();
  data->offset = in.Get<std::uint64_t>();
  data->total = in.Get<std::uint64_t>();
  data->sent_at = in.Get<std::uint64_t>();
  if (data->slot >= kMaxSlots || packet.size() != kDataBytes + data->size) return false;
  if (data->total > kMaxMessageBytes || data->offset > data->total) return false;
  if (data->size > data->total - data->offset) return false;
  return data->size > 0 || data->total == 0;
}

bool DecodeAck(std::span<const std::byte> packet, Ack* ack) noexcept {
  if (packet.size() < kAckBytes) return false;
  Reader in(packet.data() + kHeaderBytes);
  ack->cumulative = in.Get<std::uint32_t>();
  ack->start = in.Get<std::uint32_t>();
  ack->congested = in.Get<std::uint32_t>();
  ack->arrived = in.Get<std::uint32_t>();
  ack->echo = in.Get<std::uint64_t>();
  ack->delay = in.Get<std::uint32_t>();
  ack->first_grant = in.Get<std::uint32_t>();
  ack->words = in.Get<std::uint8_t>();
  ack->grants = in.Get<std::uint8_t>();
  in.Get<std::uint16_t>();
  if (ack->words > kWordsMax || ack->grants > kGrantsMax) return false;
  std::span<const std::byte> rest = packet.subspan(kAckBytes);
  if (rest.size() < std::size_t{ack->words} * 8) return false;
  for (std::size_t i = 0; i < ack->words; ++i) ack->map[i] = in.Get<std::uint64_t>();
  rest = rest.subspan(std::size_t{ack->words} * 8);
  for (std::size_t i = 0; i < ack->grants; ++i) {
    if (!GetGrant(&rest, &ack->grant[i])) return false;
  }
  return rest.empty();
}

bool DecodePing(std::span<const std::byte> packet, Ping* ping) noexcept {
  if (packet.size() != kPingBytes) return false;
  Reader in(packet.data() + kHeaderBytes);
  ping->grants_seen = in.Get<std::uint32_t>();
  return in.Get<std::uint32_t>() == 0;
}

}  // namespace weir::transport::dpdk
