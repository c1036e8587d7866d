// What handles and greetings of all backends begin with, byte by byte, and what is refused.
#include "transport/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::transport {
namespace {

constexpr HandleKind kKind{0x44434241, 0x0203, "a test's listener"};

Place Somewhere() {
  Place place{IpAddress::Parse("10.1.2.3").value(), 0x1267, {}, "host-a/17"};
  for (std::size_t i = 0; i < place.nonce.size(); ++i) place.nonce[i] = static_cast<std::byte>(0xa0 + i);
  return place;
}

std::vector<int> Numbers(std::span<const std::byte> bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

Status Refusal(std::size_t at, int value) {
  Handle handle = EncodePlace(kKind, Somewhere());
  handle.bytes[at] = static_cast<std::byte>(value);
  const auto place = DecodePlace(kKind, handle);
  return place ? Status::Ok() : place.error();
}

TEST(Place, LiesInAHandleAsTheDocumentationSays) {
  const Handle handle = EncodePlace(kKind, Somewhere());
  const auto bytes = std::span(handle.bytes);
  EXPECT_EQ(Numbers(bytes.first(10)), (std::vector<int>{0x41, 0x42, 0x43, 0x44, 3, 2, 4, 0, 0x67, 0x12}));
  const auto address = Somewhere().address.bytes();
  EXPECT_TRUE(std::ranges::equal(bytes.subspan(10, 16), std::as_bytes(std::span(address))));
  EXPECT_TRUE(std::ranges::equal(bytes.subspan(26, 16), Somewhere().nonce));
  EXPECT_EQ(Numbers(bytes.subspan(42, 10)), (std::vector<int>{'h', 'o', 's', 't', '-', 'a', '/', '1', '7', 0}));
  EXPECT_TRUE(std::ranges::all_of(bytes.subspan(52), [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(kPlaceBytes, 74u);
}

TEST(Place, ComesBackAsItWas) {
  for (const char* address : {"10.1.2.3", "2001:db8::7", "fe80::1"}) {
    Place place = Somewhere();
    place.address = IpAddress::Parse(address).value();
    const auto again = DecodePlace(kKind, EncodePlace(kKind, place));
    ASSERT_TRUE(again.has_value()) << again.error().ToString();
    EXPECT_EQ(again->address.ToString(), address);
    EXPECT_EQ(again->port, place.port);
    EXPECT_EQ(again->nonce, place.nonce);
    EXPECT_EQ(again->identity, place.identity);
  }
}

TEST(Place, OfAnotherKindVersionOrFamilyIsRefusedWithTheReason) {
  for (const auto& [at, value] : {std::pair{0, 0}, {5, 1}}) {
    const Status status = Refusal(static_cast<std::size_t>(at), value);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("no handle of a test's listener"), std::string::npos) << status.message();
  }
  EXPECT_EQ(Refusal(4, 9).code(), StatusCode::kProtocol);
  EXPECT_NE(Refusal(4, 9).message().find("version 9, we speak 3"), std::string::npos) << Refusal(4, 9).message();
  EXPECT_EQ(Refusal(6, 5).code(), StatusCode::kInvalidArgument);
  EXPECT_NE(Refusal(6, 5).message().find("found 5, allowed: 4, 6"), std::string::npos);
  Place nowhere = Somewhere();
  nowhere.port = 0;
  EXPECT_EQ(DecodePlace(kKind, EncodePlace(kKind, nowhere)).error().code(), StatusCode::kInvalidArgument);
}

TEST(Place, WhatCannotBePrintedInANameIsReplaced) {
  Place place = Somewhere();
  place.identity = "a\nb\x7f" + std::string(40, 'c');
  const auto again = DecodePlace(kKind, EncodePlace(kKind, place));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->identity, "a?b?" + std::string(27, 'c'));
}

TEST(Prefix, IsReadWhateverTheVersionAndChecksTheLength) {
  std::array<std::byte, kPrefixBytes> bytes{};
  Writer out(bytes.data());
  PutPrefix(0x44434241, 0x0102, 76, &out);
  EXPECT_EQ(Numbers(bytes), (std::vector<int>{0x41, 0x42, 0x43, 0x44, 2, 1, 76, 0}));
  EXPECT_EQ(PrefixVersion(0x44434241, bytes).value(), 0x0102);
  EXPECT_EQ(PrefixVersion(1, bytes).error().code(), StatusCode::kProtocol);
  Reader right(bytes.data());
  EXPECT_TRUE(SkipPrefix(76, &right).ok());
  Reader wrong(bytes.data());
  EXPECT_NE(SkipPrefix(60, &wrong).message().find("found 76, allowed: 60"), std::string::npos);
}

}  // namespace
}  // namespace weir::transport
