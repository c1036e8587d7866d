#include "transport/rdma/wire.h"

#include <fmt/format.h>

namespace weir::transport::rdma {
namespace {

constexpr HandleKind kHandleKind{kHandleMagic, kVersion, "an RDMA listener"};

Status Wrong(const char* what, unsigned found, const char* allowed) {
  return Status(StatusCode::kProtocol, fmt::format("{} in a greeting: found {}, allowed: {}", what, found, allowed));
}

void PutEnd(Writer* out, const End& end) {
  for (const std::uint8_t byte : end.gid) out->Put(byte);
  out->Put(end.lid);
  out->Put(std::uint16_t{0});
  out->Put(end.first_packet);
  out->Put(end.memory_address);
  out->Put(end.memory_key);
  for (const std::uint32_t pair : end.queue_pairs) out->Put(pair);
}

End GetEnd(Reader* in) {
  End end;
  for (std::uint8_t& byte : end.gid) byte = in->Get<std::uint8_t>();
  end.lid = in->Get<std::uint16_t>();
  in->Get<std::uint16_t>();
  end.first_packet = in->Get<std::uint32_t>();
  end.memory_address = in->Get<std::uint64_t>();
  end.memory_key = in->Get<std::uint32_t>();
  for (std::uint32_t& pair : end.queue_pairs) pair = in->Get<std::uint32_t>();
  return end;
}

bool Is24Bits(std::uint32_t value) {
  return value < (1u << 24);
}

Status CheckEnd(const End& end) {
  if (!Is24Bits(end.first_packet)) return Wrong("packet number", end.first_packet, "24 bits");
  for (const std::uint32_t pair : end.queue_pairs) {
    if (!Is24Bits(pair)) return Wrong("queue pair", pair, "24 bits");
  }
  return Status::Ok();
}

bool IsMtu(std::uint8_t value) {
  return value >= 1 && value <= 5;
}

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
  out.Put(hello.queue_pairs);
  out.Put(hello.classes);
  out.Put(hello.service_level);
  out.Put(hello.mtu);
  out.Put(static_cast<std::uint8_t>(hello.ethernet ? 1 : 0));
  for (const std::uint8_t one : hello.traffic_classes) out.Put(one);
  out.Put(std::uint16_t{0});
  out.Put(std::uint8_t{0});
  out.PutIdentity(hello.identity);
  return bytes;
}

std::array<std::byte, kWelcomeBytes> EncodeWelcome(const Welcome& welcome) {
  std::array<std::byte, kWelcomeBytes> bytes{};
  Writer out(bytes.data());
  PutPrefix(kGreetMagic, kVersion, kWelcomeBytes, &out);
  out.Put(static_cast<std::uint8_t>(welcome.verdict));
  out.Put(welcome.slots);
  out.Put(welcome.mtu);
  out.Put(std::uint8_t{0});
  out.Put(welcome.requests);
  out.Put(welcome.channel);
  out.PutIdentity(welcome.identity);
  PutEnd(&out, welcome.end);
  return bytes;
}

std::array<std::byte, kAttachBytes> EncodeAttach(const End& end) {
  std::array<std::byte, kAttachBytes> bytes{};
  Writer out(bytes.data());
  PutPrefix(kGreetMagic, kVersion, kAttachBytes, &out);
  PutEnd(&out, end);
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
  hello.queue_pairs = in.Get<std::uint8_t>();
  hello.classes = in.Get<std::uint8_t>();
  hello.service_level = in.Get<std::uint8_t>();
  hello.mtu = in.Get<std::uint8_t>();
  const auto link = in.Get<std::uint8_t>();
  hello.ethernet = link == 1;
  for (std::uint8_t& one : hello.traffic_classes) one = in.Get<std::uint8_t>();
  in.Get<std::uint16_t>();
  in.Get<std::uint8_t>();
  hello.identity = in.GetIdentity();
  if (hello.classes < 1 || hello.classes > kQueueLevels) {
    return tl::unexpected(Wrong("traffic classes", hello.classes, "1 to 8"));
  }
  if (hello.queue_pairs < 1 || hello.queue_pairs * hello.classes > static_cast<int>(kMaxQueuePairs)) {
    return tl::unexpected(Wrong("queue pairs of a class", hello.queue_pairs, "1 to 16, 16 in all"));
  }
  if (hello.service_level > 15) return tl::unexpected(Wrong("service level", hello.service_level, "0 to 15"));
  if (!IsMtu(hello.mtu)) return tl::unexpected(Wrong("MTU", hello.mtu, "1 to 5"));
  if (link > 1) return tl::unexpected(Wrong("link", link, "0 or 1"));
  return hello;
}

Result<Welcome> DecodeWelcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  Reader in(bytes.data());
  if (Status status = SkipPrefix(kWelcomeBytes, &in); !status.ok()) return tl::unexpected(status);
  Welcome welcome;
  const auto verdict = in.Get<std::uint8_t>();
  if (verdict > static_cast<std::uint8_t>(Verdict::kNoRoom)) return tl::unexpected(Wrong("verdict", verdict, "0 to 6"));
  welcome.verdict = static_cast<Verdict>(verdict);
  welcome.slots = in.Get<std::uint8_t>();
  welcome.mtu = in.Get<std::uint8_t>();
  in.Get<std::uint8_t>();
  welcome.requests = in.Get<std::uint32_t>();
  welcome.channel = in.GetNonce();
  welcome.identity = in.GetIdentity();
  welcome.end = GetEnd(&in);
  if (welcome.verdict != Verdict::kWelcome) return welcome;
  if (welcome.slots < 1 || welcome.slots > kMaxSlots) return tl::unexpected(Wrong("slots", welcome.slots, "1 to 8"));
  if (!IsMtu(welcome.mtu)) return tl::unexpected(Wrong("MTU", welcome.mtu, "1 to 5"));
  if (welcome.requests < 1 || welcome.requests > kMaxRequests) {
    return tl::unexpected(Wrong("receives", welcome.requests, "1 to 4096"));
  }
  if (Status status = CheckEnd(welcome.end); !status.ok()) return tl::unexpected(status);
  return welcome;
}

Result<End> DecodeAttach(std::span<const std::byte, kAttachBytes> bytes) {
  Reader in(bytes.data());
  if (Status status = SkipPrefix(kAttachBytes, &in); !status.ok()) return tl::unexpected(status);
  const End end = GetEnd(&in);
  if (Status status = CheckEnd(end); !status.ok()) return tl::unexpected(status);
  return end;
}

std::size_t EncodePosted(const Posted& posted, std::span<std::byte, kPostedStride> out) noexcept {
  Writer writer(out.data());
  writer.Put(posted.number);
  writer.Put(posted.count);
  for (std::uint32_t i = 0; i < posted.count; ++i) {
    const Posted::Room& room = posted.rooms[i];
    writer.Put(room.address);
    writer.Put(room.capacity);
    writer.Put(room.key);
    writer.Put(room.tag);
  }
  return 8 + posted.count * kRoomBytes;
}

bool DecodePosted(std::span<const std::byte, kPostedStride> in, Posted* posted) noexcept {
  Reader reader(in.data());
  posted->number = reader.Get<std::uint32_t>();
  posted->count = reader.Get<std::uint32_t>();
  if (posted->count < 1 || posted->count > kMaxSlots) return false;
  for (std::uint32_t i = 0; i < posted->count; ++i) {
    Posted::Room& room = posted->rooms[i];
    room.address = reader.Get<std::uint64_t>();
    room.capacity = reader.Get<std::uint64_t>();
    room.key = reader.Get<std::uint32_t>();
    room.tag = reader.Get<std::int32_t>();
    if (room.address > ~std::uint64_t{0} - room.capacity) return false;
  }
  return true;
}

void EncodeRecord(const Record& record, std::span<std::byte, kRecordBytes> out) noexcept {
  Writer writer(out.data());
  writer.Put(record.total);
  writer.Put(record.ends);
  writer.Put(std::uint32_t{0});
}

bool DecodeRecord(std::span<const std::byte, kRecordBytes> in, Record* record) noexcept {
  Reader reader(in.data());
  record->total = reader.Get<std::uint64_t>();
  record->ends = reader.Get<std::uint32_t>();
  return record->total <= kMaxMessageBytes && record->ends >= 1 && record->ends <= kMaxQueuePairs;
}

std::uint32_t EncodeMark(const Mark& mark) noexcept {
  static_assert(kMaxSlots == 8 && kMaxRequests == 1u << 12 && kMarkNumbers == 1u << (32 - 3 - 12 - 2));
  return (static_cast<std::uint32_t>(mark.kind) << 30) | ((mark.number % kMarkNumbers) << 15) | (mark.entry << 3) |
         mark.slot;
}

bool DecodeMark(std::uint32_t value, Mark* mark) noexcept {
  mark->kind = static_cast<Mark::Kind>(value >> 30);
  mark->number = (value >> 15) % kMarkNumbers;
  mark->entry = (value >> 3) % kMaxRequests;
  mark->slot = value % kMaxSlots;
  return mark->kind <= Mark::Kind::kRecord;
}

}  // namespace weir::transport::rdma
