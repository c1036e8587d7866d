#include "transport/rdma/wire.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::transport::rdma {
namespace {

Nonce Filled(int value) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(value));
  return nonce;
}

End SomeEnd() {
  End end;
  std::fill(end.gid.begin(), end.gid.end(), std::uint8_t{7});
  end.lid = 0x1234;
  end.first_packet = 0xabcdef;
  end.memory_address = 0x1122334455667788;
  end.memory_key = 0x99aabbcc;
  for (std::size_t i = 0; i < kMaxQueuePairs; ++i) end.queue_pairs[i] = static_cast<std::uint32_t>(100 + i);
  return end;
}

void ExpectSame(const End& a, const End& b) {
  EXPECT_EQ(a.gid, b.gid);
  EXPECT_EQ(a.lid, b.lid);
  EXPECT_EQ(a.first_packet, b.first_packet);
  EXPECT_EQ(a.memory_address, b.memory_address);
  EXPECT_EQ(a.memory_key, b.memory_key);
  EXPECT_EQ(a.queue_pairs, b.queue_pairs);
}

Hello SomeHello() {
  return {Filled(1), Filled(2), 2, 3, 5, 4, true, {8, 16, 32}, "left/1"};
}

Welcome SomeWelcome() {
  return {Verdict::kWelcome, 4, 3, 256, Filled(2), "right/2", SomeEnd()};
}

TEST(RdmaHandle, ComesBackAsItWas) {
  for (const char* address : {"10.0.0.1", "fd00::7"}) {
    const Place place{IpAddress::Parse(address).value(), 4711, Filled(9), "right/2"};
    const auto back = DecodeHandle(EncodeHandle(place));
    ASSERT_TRUE(back.has_value()) << back.error().ToString();
    EXPECT_EQ(back->address, place.address);
    EXPECT_EQ(back->port, place.port);
    EXPECT_EQ(back->nonce, place.nonce);
    EXPECT_EQ(back->identity, place.identity);
  }
}

TEST(RdmaHandle, OfAnotherKindVersionOrFamilyIsRefused) {
  const Handle good = EncodeHandle({IpAddress::Parse("10.0.0.1").value(), 4711, Filled(9), "right/2"});
  EXPECT_EQ(DecodeHandle(Handle{}).error().code(), StatusCode::kInvalidArgument);
  const auto with = [&](std::size_t at, int value) {
    Handle bad = good;
    bad.bytes[at] = static_cast<std::byte>(value);
    return DecodeHandle(bad).error();
  };
  EXPECT_EQ(with(4, 9).code(), StatusCode::kProtocol);
  EXPECT_NE(with(4, 9).message().find("version 9, we speak 1"), std::string::npos);
  EXPECT_EQ(with(6, 5).code(), StatusCode::kInvalidArgument);
  Handle nowhere = good;
  nowhere.bytes[8] = nowhere.bytes[9] = std::byte{0};
  EXPECT_EQ(DecodeHandle(nowhere).error().code(), StatusCode::kInvalidArgument);
}

TEST(RdmaHello, ComesBackAsItWas) {
  const Hello hello = SomeHello();
  const auto bytes = EncodeHello(hello);
  EXPECT_EQ(GreetingVersion(std::span(bytes).first<kPrefixBytes>()).value(), kVersion);
  const auto back = DecodeHello(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().ToString();
  EXPECT_EQ(back->listener, hello.listener);
  EXPECT_EQ(back->channel, hello.channel);
  EXPECT_EQ(back->queue_pairs, 2);
  EXPECT_EQ(back->classes, 3);
  EXPECT_EQ(back->service_level, 5);
  EXPECT_EQ(back->mtu, 4);
  EXPECT_TRUE(back->ethernet);
  EXPECT_EQ(back->traffic_classes, hello.traffic_classes);
  EXPECT_EQ(back->identity, "left/1");
}

TEST(RdmaHello, OutOfRangeIsRefusedWithWhatWasFound) {
  const auto refused = [](auto change) {
    Hello hello = SomeHello();
    change(&hello);
    const auto back = DecodeHello(EncodeHello(hello));
    return back ? std::string("taken") : back.error().message();
  };
  EXPECT_NE(refused([](Hello* h) { h->classes = 0; }).find("traffic classes in a greeting: found 0"),
            std::string::npos);
  EXPECT_NE(refused([](Hello* h) { h->classes = 9; }).find("found 9"), std::string::npos);
  EXPECT_NE(refused([](Hello* h) { h->queue_pairs = 6; }).find("queue pairs"), std::string::npos);
  EXPECT_NE(refused([](Hello* h) { h->queue_pairs = 0; }).find("queue pairs"), std::string::npos);
  EXPECT_NE(refused([](Hello* h) { h->service_level = 16; }).find("service level"), std::string::npos);
  EXPECT_NE(refused([](Hello* h) { h->mtu = 6; }).find("MTU"), std::string::npos);
  auto bytes = EncodeHello(SomeHello());
  bytes[6] = std::byte{1};
  EXPECT_NE(DecodeHello(bytes).error().message().find("length"), std::string::npos);
  bytes = EncodeHello(SomeHello());
  bytes[0] = std::byte{0};
  EXPECT_EQ(GreetingVersion(std::span(bytes).first<kPrefixBytes>()).error().code(), StatusCode::kProtocol);
}

TEST(RdmaWelcome, ComesBackAsItWas) {
  const Welcome welcome = SomeWelcome();
  const auto back = DecodeWelcome(EncodeWelcome(welcome));
  ASSERT_TRUE(back.has_value()) << back.error().ToString();
  EXPECT_EQ(back->verdict, Verdict::kWelcome);
  EXPECT_EQ(back->slots, 4);
  EXPECT_EQ(back->mtu, 3);
  EXPECT_EQ(back->requests, 256u);
  EXPECT_EQ(back->channel, welcome.channel);
  EXPECT_EQ(back->identity, "right/2");
  ExpectSame(back->end, welcome.end);
}

TEST(RdmaWelcome, OutOfRangeIsRefused) {
  const auto refused = [](auto change) {
    Welcome welcome = SomeWelcome();
    change(&welcome);
    return !DecodeWelcome(EncodeWelcome(welcome)).has_value();
  };
  EXPECT_TRUE(refused([](Welcome* w) { w->slots = 9; }));
  EXPECT_TRUE(refused([](Welcome* w) { w->mtu = 0; }));
  EXPECT_TRUE(refused([](Welcome* w) { w->requests = 0; }));
  EXPECT_TRUE(refused([](Welcome* w) { w->requests = kMaxRequests + 1; }));
  EXPECT_TRUE(refused([](Welcome* w) { w->end.queue_pairs[3] = 1u << 24; }));
  EXPECT_TRUE(refused([](Welcome* w) { w->end.first_packet = 1u << 24; }));
  EXPECT_TRUE(refused([](Welcome* w) { w->verdict = static_cast<Verdict>(7); }));
}

TEST(RdmaWelcome, ARefusalNeedsNothingElse) {
  Welcome refusal;
  refusal.verdict = Verdict::kTaken;
  refusal.identity = "right/2";
  EXPECT_EQ(DecodeWelcome(EncodeWelcome(refusal)).value().verdict, Verdict::kTaken);
}

TEST(RdmaAttach, ComesBackAsItWas) {
  const auto back = DecodeAttach(EncodeAttach(SomeEnd()));
  ASSERT_TRUE(back.has_value());
  ExpectSame(*back, SomeEnd());
  End wrong = SomeEnd();
  wrong.queue_pairs[15] = 1u << 24;
  EXPECT_EQ(DecodeAttach(EncodeAttach(wrong)).error().code(), StatusCode::kProtocol);
}

TEST(RdmaPosted, ComesBackAsItWas) {
  Posted posted;
  posted.number = 4'000'000'000;
  posted.count = kMaxSlots;
  for (std::uint32_t i = 0; i < kMaxSlots; ++i) posted.rooms[i] = {i * 1000ull, i * 10ull, i, -static_cast<int>(i)};
  std::array<std::byte, kPostedStride> bytes{};
  EXPECT_EQ(EncodePosted(posted, bytes), kPostedBytesMax);
  Posted back;
  ASSERT_TRUE(DecodePosted(bytes, &back));
  EXPECT_EQ(back.number, posted.number);
  ASSERT_EQ(back.count, posted.count);
  for (std::uint32_t i = 0; i < kMaxSlots; ++i) {
    EXPECT_EQ(back.rooms[i].address, posted.rooms[i].address);
    EXPECT_EQ(back.rooms[i].capacity, posted.rooms[i].capacity);
    EXPECT_EQ(back.rooms[i].key, posted.rooms[i].key);
    EXPECT_EQ(back.rooms[i].tag, posted.rooms[i].tag);
  }
}

TEST(RdmaPosted, WithoutOrWithTooManyRoomsOrBeyondMemoryIsRefused) {
  Posted posted;
  std::array<std::byte, kPostedStride> bytes{};
  EncodePosted(posted, bytes);
  EXPECT_FALSE(DecodePosted(bytes, &posted));
  bytes[4] = std::byte{9};
  EXPECT_FALSE(DecodePosted(bytes, &posted));
  posted.count = 1;
  posted.rooms[0].address = ~std::uint64_t{0} - 5;
  posted.rooms[0].capacity = 6;
  EncodePosted(posted, bytes);
  EXPECT_FALSE(DecodePosted(bytes, &posted));
}

TEST(RdmaRecord, ComesBackAsItWasOrIsRefused) {
  std::array<std::byte, kRecordBytes> bytes{};
  Record record;
  EncodeRecord({kMaxMessageBytes, 16}, bytes);
  ASSERT_TRUE(DecodeRecord(bytes, &record));
  EXPECT_EQ(record.total, kMaxMessageBytes);
  EXPECT_EQ(record.ends, 16u);
  for (const Record& bad : {Record{kMaxMessageBytes + 1, 1}, Record{1, 0}, Record{1, 17}}) {
    EncodeRecord(bad, bytes);
    EXPECT_FALSE(DecodeRecord(bytes, &record));
  }
}

TEST(RdmaMark, ComesBackAsItWasOrIsRefused) {
  for (const auto kind : {Mark::Kind::kWhole, Mark::Kind::kPart, Mark::Kind::kRecord}) {
    Mark mark;
    ASSERT_TRUE(DecodeMark(EncodeMark({kind, kMarkNumbers + 5, kMaxRequests - 1, 7}), &mark));
    EXPECT_EQ(mark.kind, kind);
    EXPECT_EQ(mark.number, 5u);
    EXPECT_EQ(mark.entry, kMaxRequests - 1);
    EXPECT_EQ(mark.slot, 7u);
  }
  Mark mark;
  EXPECT_FALSE(DecodeMark(3u << 30, &mark));
}

}  // namespace
}  // namespace weir::transport::rdma
