#include "transport/tcp/wire.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::transport::tcp {
namespace {

Nonce Counting(int from) {
  Nonce nonce;
  for (std::byte& byte : nonce) byte = static_cast<std::byte>(from++);
  return nonce;
}

Place Somewhere(const char* address) {
  return {*IpAddress::Parse(address), 4711, Counting(1), "host-a/17"};
}

TEST(TcpHandle, ComesBackAsItWas) {
  for (const char* address : {"10.1.2.3", "2001:db8::7", "fe80::1"}) {
    const auto place = DecodeHandle(EncodeHandle(Somewhere(address)));
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->address.ToString(), address);
    EXPECT_EQ(place->port, 4711);
    EXPECT_EQ(place->nonce, Counting(1));
    EXPECT_EQ(place->identity, "host-a/17");
  }
}

TEST(TcpHandle, WrongOnesAreRefusedWithTheirReason) {
  EXPECT_EQ(DecodeHandle(Handle{}).error().code(), StatusCode::kInvalidArgument);
  Handle handle = EncodeHandle(Somewhere("10.1.2.3"));
  handle.bytes[4] = std::byte{9};
  EXPECT_EQ(DecodeHandle(handle).error().code(), StatusCode::kProtocol);
  EXPECT_NE(DecodeHandle(handle).error().message().find("version 9, we speak 1"), std::string::npos);
  handle = EncodeHandle(Somewhere("10.1.2.3"));
  handle.bytes[6] = std::byte{5};
  EXPECT_EQ(DecodeHandle(handle).error().code(), StatusCode::kInvalidArgument);
  Place nowhere = Somewhere("10.1.2.3");
  nowhere.port = 0;
  EXPECT_EQ(DecodeHandle(EncodeHandle(nowhere)).error().code(), StatusCode::kInvalidArgument);
}

TEST(TcpGreeting, HelloAndWelcomeComeBackAsTheyWere) {
  const auto hello = DecodeHello(EncodeHello({Counting(1), Counting(100), 3, 4, "host-b/9"}));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->listener, Counting(1));
  EXPECT_EQ(hello->channel, Counting(100));
  EXPECT_EQ(hello->stream, 3);
  EXPECT_EQ(hello->streams, 4);
  EXPECT_EQ(hello->identity, "host-b/9");
  const auto welcome = DecodeWelcome(EncodeWelcome({Verdict::kTaken, 8, Counting(7), "host-a/17"}));
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->verdict, Verdict::kTaken);
  EXPECT_EQ(welcome->slots, 8);
  EXPECT_EQ(welcome->channel, Counting(7));
  EXPECT_EQ(welcome->identity, "host-a/17");
}

TEST(TcpGreeting, TheVersionIsReadableWhateverFollows) {
  auto hello = EncodeHello({Counting(1), Counting(2), 0, 1, "x"});
  hello[4] = std::byte{200};
  EXPECT_EQ(GreetingVersion(std::span(hello).first<kPrefixBytes>()), 200);
  hello[0] = std::byte{'G'};
  EXPECT_FALSE(GreetingVersion(std::span(hello).first<kPrefixBytes>()).has_value());
}

TEST(TcpGreeting, AnIdentityIsCutAndMadePrintable) {
  const auto hello = DecodeHello(EncodeHello({{}, {}, 0, 1, "a b\n" + std::string(100, 'x')}));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->identity, "a?b?" + std::string(27, 'x'));
}

TEST(TcpGreeting, StreamsOutOfRangeAreRefused) {
  EXPECT_FALSE(DecodeHello(EncodeHello({{}, {}, 0, 0, "x"})).has_value());
  EXPECT_FALSE(DecodeHello(EncodeHello({{}, {}, 0, kMaxStreams + 1, "x"})).has_value());
  EXPECT_FALSE(DecodeHello(EncodeHello({{}, {}, 3, 2, "x"})).has_value());
  auto longer = EncodeHello({{}, {}, 0, 1, "x"});
  longer[6] = std::byte{77};
  EXPECT_FALSE(DecodeHello(longer).has_value());
}

TEST(TcpGreeting, AnAnswerOutOfRangeIsRefused) {
  auto unknown = EncodeWelcome({Verdict::kMalformed, 1, {}, "x"});
  unknown[8] = std::byte{5};
  EXPECT_FALSE(DecodeWelcome(unknown).has_value());
  EXPECT_FALSE(DecodeWelcome(EncodeWelcome({Verdict::kWelcome, 0, {}, "x"})).has_value());
  EXPECT_FALSE(DecodeWelcome(EncodeWelcome({Verdict::kWelcome, kMaxSlots + 1, {}, "x"})).has_value());
  auto other = EncodeWelcome({Verdict::kWelcome, 1, {}, "host-z/1"});
  other[4] = std::byte{2};
  EXPECT_NE(DecodeWelcome(other).error().message().find("host-z/1 speaks version 2, we speak 1"), std::string::npos);
  other[0] = std::byte{0};
  EXPECT_FALSE(DecodeWelcome(other).has_value());
}

TEST(TcpChunk, ComesBackAsItWas) {
  std::array<std::byte, kChunkBytes> bytes;
  EncodeChunk({-7, 0xfffffffe, 4096, Bytes{1} << 39, (Bytes{1} << 39) + 4096}, bytes);
  Chunk chunk;
  ASSERT_TRUE(DecodeChunk(bytes, &chunk));
  EXPECT_EQ(chunk.tag, -7);
  EXPECT_EQ(chunk.message, 0xfffffffe);
  EXPECT_EQ(chunk.length, 4096u);
  EXPECT_EQ(chunk.offset, Bytes{1} << 39);
  EXPECT_EQ(chunk.total, (Bytes{1} << 39) + 4096);
}

TEST(TcpChunk, OneThatDoesNotFitItsMessageIsRefused) {
  const Chunk cases[] = {{0, 0, 11, 0, 10},        {0, 0, 1, 10, 10}, {0, 0, 1, 11, 10},
                         {0, 0, 1, ~Bytes{0}, 10}, {0, 0, 0, 5, 10},  {0, 0, 1, 0, kMaxMessageBytes + 1}};
  for (const Chunk& wrong : cases) {
    std::array<std::byte, kChunkBytes> bytes;
    EncodeChunk(wrong, bytes);
    Chunk chunk;
    EXPECT_FALSE(DecodeChunk(bytes, &chunk)) << wrong.length << ' ' << wrong.offset << ' ' << wrong.total;
  }
  std::array<std::byte, kChunkBytes> bytes;
  EncodeChunk({0, 0, 1, 0, 1}, bytes);
  bytes[0] = std::byte{2};
  Chunk chunk;
  EXPECT_FALSE(DecodeChunk(bytes, &chunk));
}

TEST(TcpControl, FramesAreCutOutOfWhatIsThere) {
  Control posted;
  posted.count = 2;
  posted.slots[0] = {5, 100};
  posted.slots[1] = {-6, Bytes{1} << 40};
  std::array<std::byte, kControlBytesMax> bytes;
  const std::size_t size = EncodeControl(posted, bytes);
  EXPECT_EQ(size, kControlBytes + 2 * kPostedBytes);
  Control control;
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(DecodeControl(std::span(bytes).first(i), &control), 0u);
  ASSERT_EQ(DecodeControl(bytes, &control), size);
  EXPECT_EQ(control.count, 2u);
  EXPECT_EQ(control.slots[1].tag, -6);
  EXPECT_EQ(control.slots[1].capacity, Bytes{1} << 40);
  ASSERT_EQ(EncodeControl(Control{}, bytes), kControlBytes);
  EXPECT_EQ(DecodeControl(bytes, &control), kControlBytes);
  EXPECT_EQ(control.count, 0u);
}

TEST(TcpControl, WhatCannotBeAFrameIsSaidAtOnce) {
  std::array<std::byte, kControlBytesMax> bytes;
  Control control;
  for (const auto& [kind, count] :
       {std::pair{1, 1}, std::pair{2, 0}, std::pair{2, 9}, std::pair{3, 0}, std::pair{0, 0}}) {
    bytes.fill(std::byte{0});
    bytes[0] = static_cast<std::byte>(kind);
    bytes[4] = static_cast<std::byte>(count);
    EXPECT_EQ(DecodeControl(std::span(bytes).first(kControlBytes), &control), kControlBad) << kind << ' ' << count;
  }
}

}  // namespace
}  // namespace weir::transport::tcp
