#include "coflow/wire/frame.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::wire {
namespace {

using namespace std::string_literals;

std::string Framed(std::string_view payload) {
  std::string bytes;
  AppendFrame(payload, &bytes);
  return bytes;
}

std::string Complaint(std::string_view bytes) {
  const auto frame = NextFrame(bytes);
  EXPECT_FALSE(frame);
  if (frame) return "";
  EXPECT_EQ(frame.error().code(), StatusCode::kProtocol);
  return frame.error().message();
}

TEST(Frame, BytesOnTheWireAreTheseForEver) {
  EXPECT_EQ(Framed("hi"), "WEIR\x01\x00\x00\x00\x02\x00\x00\x00hi"s);
  EXPECT_EQ(Framed(""), "WEIR\x01\x00\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(Framed(std::string(0x10203, 'x')).substr(8, 4), "\x03\x02\x01\x00"s);
}

TEST(Frame, WholeFrameIsReadBack) {
  const std::string bytes = Framed("payload");
  const FrameView frame = NextFrame(bytes).value();
  EXPECT_TRUE(frame.complete);
  EXPECT_EQ(frame.size, bytes.size());
  EXPECT_EQ(frame.payload, "payload");
}

TEST(Frame, EveryBeginningOfAFrameWantsMore) {
  const std::string bytes = Framed("payload");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto frame = NextFrame(std::string_view(bytes).substr(0, length));
    ASSERT_TRUE(frame) << length;
    EXPECT_FALSE(frame->complete) << length;
  }
}

TEST(Frame, FramesBehindEachOtherAreTakenOneByOne) {
  std::string stream;
  AppendFrame("first", &stream);
  AppendFrame("", &stream);
  AppendFrame("third", &stream);
  std::string_view rest = stream;
  for (const std::string_view expected : {"first", "", "third"}) {
    const FrameView frame = NextFrame(rest).value();
    ASSERT_TRUE(frame.complete);
    EXPECT_EQ(frame.payload, expected);
    rest.remove_prefix(frame.size);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(Frame, ForeignProtocolIsRefusedAfterFourBytes) {
  EXPECT_EQ(Complaint("GET "), "the peer does not speak Weir: frame begins with 0x20544547 instead of 0x52494557");
  EXPECT_TRUE(NextFrame("GET").value().complete == false);
}

TEST(Frame, OtherVersionIsRefusedBeforeItsLengthIsRead) {
  EXPECT_EQ(Complaint("WEIR\x02\x00"s), "the peer's frames have version 2, this side speaks 1");
  EXPECT_EQ(Complaint("WEIR\x00\x01\x00\x00\xff\xff\xff\xff"s),
            "the peer's frames have version 256, this side speaks 1");
}

TEST(Frame, MagicIsCheckedBeforeTheVersion) {
  EXPECT_NE(Complaint("weir\x09\x00\x00\x00\xff\xff\xff\xff"s).find("does not speak Weir"), std::string::npos);
}

TEST(Frame, LengthBeyondTheLimitIsRefusedWithoutWaitingForIt) {
  EXPECT_EQ(Complaint("WEIR\x01\x00\x00\x00\x01\x00\x40\x00"s), "frame of 4194305 bytes; at most 4194304 are allowed");
  EXPECT_EQ(Complaint("WEIR\x01\x00\x00\x00\xff\xff\xff\xff"s),
            "frame of 4294967295 bytes; at most 4194304 are allowed");
  EXPECT_FALSE(NextFrame("WEIR\x01\x00\x00\x00\x00\x00\x40\x00"s).value().complete);
}

TEST(Frame, LargestPayloadGoesThrough) {
  const std::string bytes = Framed(std::string(kMaxFrameBytes, 'x'));
  EXPECT_EQ(NextFrame(bytes).value().payload.size(), kMaxFrameBytes);
}

TEST(Frame, ReservedBytesAreIgnored) {
  EXPECT_EQ(NextFrame("WEIR\x01\x00\xaa\xbb\x01\x00\x00\x00x"s).value().payload, "x");
}

TEST(FrameDeath, PayloadBeyondTheLimitIsAProgrammingError) {
  EXPECT_DEATH(Framed(std::string(kMaxFrameBytes + 1, 'x')), "check failed");
}

}  // namespace
}  // namespace weir::wire
