#include "coflow/wire/frame.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include "coflow/check.h"

namespace weir::wire {
namespace {

/// Left alone, protobuf writes a line to standard error for every message with a text that is no UTF-8, and a hostile
/// peer could fill the disk with them. Whoever reads the frame reports what is wrong with it, once.
[[maybe_unused]] const bool protobuf_is_silent = [] {
  google::protobuf::SetLogHandler(nullptr);
  return true;
}();

void AppendLittleEndian(std::uint64_t value, std::size_t bytes, std::string* out) {
  for (std::size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint32_t ReadLittleEndian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

}  // namespace

void AppendFrame(std::string_view payload, std::string* out) {
  WEIR_CHECK(payload.size() <= kMaxFrameBytes);
  AppendLittleEndian(kFrameMagic, 4, out);
  AppendLittleEndian(kFrameVersion, 2, out);
  AppendLittleEndian(0, 2, out);
  AppendLittleEndian(payload.size(), 4, out);
  out->append(payload);
}

Result<FrameView> NextFrame(std::string_view bytes) {
  if (bytes.size() >= 4 && ReadLittleEndian(bytes.substr(0, 4)) != kFrameMagic) {
    return Error(StatusCode::kProtocol,
                 fmt::format("the peer does not speak Weir: frame begins with {:#010x} instead of {:#010x}",
                             ReadLittleEndian(bytes.substr(0, 4)), kFrameMagic));
  }
  if (bytes.size() >= 6 && ReadLittleEndian(bytes.substr(4, 2)) != kFrameVersion) {
    return Error(StatusCode::kProtocol, fmt::format("the peer's frames have version {}, this side speaks {}",
                                                    ReadLittleEndian(bytes.substr(4, 2)), kFrameVersion));
  }
  if (bytes.size() < kFrameHeaderBytes) return FrameView{};
  const std::size_t length = ReadLittleEndian(bytes.substr(8, 4));
  if (length > kMaxFrameBytes) {
    return Error(StatusCode::kProtocol,
                 fmt::format("frame of {} bytes; at most {} are allowed", length, kMaxFrameBytes));
  }
  if (bytes.size() < kFrameHeaderBytes + length) return FrameView{};
  return FrameView{true, kFrameHeaderBytes + length, bytes.substr(kFrameHeaderBytes, length)};
}

}  // namespace weir::wire
