// Everything that comes out of a network card: understood or refused, and what is understood stays within its limits.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "coflow/check.h"
#include "transport/dpdk/frame.h"
#include "transport/dpdk/neighbour.h"
#include "transport/dpdk/wire.h"

namespace dpdk = weir::transport::dpdk;

namespace {

void Packets(std::span<const std::byte> input) {
  dpdk::Header header;
  if (dpdk::DecodeHeader(input, &header) != dpdk::HeaderVerdict::kOk) return;
  WEIR_CHECK(header.length == input.size());
  if (const auto greeting = dpdk::DecodeGreeting(input)) {
    WEIR_CHECK(greeting->slots >= 1 && greeting->slots <= weir::transport::kMaxSlots);
    WEIR_CHECK(greeting->identity.size() < weir::transport::kIdentityBytes);
  }
  dpdk::Data data;
  if (dpdk::DecodeData(input, &data)) {
    WEIR_CHECK(data.total <= weir::transport::kMaxMessageBytes && data.slot < weir::transport::kMaxSlots);
    WEIR_CHECK(data.offset <= data.total && data.size <= data.total - data.offset);
    WEIR_CHECK(dpdk::kDataBytes + data.size == input.size());
  }
  dpdk::Ack ack;
  if (dpdk::DecodeAck(input, &ack)) {
    WEIR_CHECK(ack.words <= dpdk::kWordsMax && ack.grants <= dpdk::kGrantsMax);
    std::array<std::byte, 8192> again{};
    std::size_t grants = 0;
    WEIR_CHECK(dpdk::EncodeAck(header.kind, header.to, header.flags, ack, again.size(), again.data(), &grants) ==
               input.size());
    WEIR_CHECK(grants == ack.grants);
  }
  dpdk::Ping ping;
  static_cast<void>(dpdk::DecodePing(input, &ping));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto input = std::as_bytes(std::span(bytes, size));
  Packets(input);
  dpdk::NeighbourMessage heard;
  if (dpdk::DecodeNeighbour(input, &heard)) {
    std::array<std::byte, dpdk::kNeighbourFrameBytes> again{};
    dpdk::NeighbourMessage same;
    const std::size_t written = dpdk::EncodeNeighbour(heard, heard.sender_mac, again.data());
    WEIR_CHECK(dpdk::DecodeNeighbour(std::span(again).first(written), &same));
    WEIR_CHECK(same.asks == heard.asks && same.sender == heard.sender && same.sender_mac == heard.sender_mac);
  }
  dpdk::Datagram datagram;
  if (dpdk::DecodeFrame(input, &datagram) == dpdk::FrameVerdict::kOk) {
    WEIR_CHECK(datagram.payload.size() + dpdk::FrameOverhead(datagram.path.source.is_v4()) <= size);
    Packets(datagram.payload);
  }
  weir::transport::Handle handle;
  std::copy_n(input.begin(), std::min(size, handle.bytes.size()), handle.bytes.begin());
  if (const auto place = dpdk::DecodeHandle(handle)) {
    const auto again = dpdk::DecodeHandle(dpdk::EncodeHandle(*place));
    WEIR_CHECK(again && again->address == place->address && again->mac == place->mac);
  }
  return 0;
}
