// Everything that comes to the RDMA backend: greetings, handles, and what the other end writes into our memory:
// understood or refused, and what is understood stays within its limits and says the same again when it is encoded.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "coflow/check.h"
#include "transport/rdma/wire.h"

namespace rdma = weir::transport::rdma;

namespace {

/// The front of the input, filled up with zeros.
template <std::size_t kSize>
std::array<std::byte, kSize> Front(std::span<const std::byte> input) {
  std::array<std::byte, kSize> bytes{};
  std::copy_n(input.begin(), std::min(input.size(), kSize), bytes.begin());
  return bytes;
}

void Greetings(std::span<const std::byte> input) {
  static_cast<void>(rdma::GreetingVersion(Front<rdma::kPrefixBytes>(input)));
  if (const auto hello = rdma::DecodeHello(Front<rdma::kHelloBytes>(input))) {
    WEIR_CHECK(hello->queue_pairs >= 1 &&
               hello->queue_pairs * hello->classes <= static_cast<int>(rdma::kMaxQueuePairs));
    const auto again = rdma::DecodeHello(rdma::EncodeHello(*hello));
    WEIR_CHECK(again && again->identity == hello->identity && again->traffic_classes == hello->traffic_classes);
  }
  if (const auto welcome = rdma::DecodeWelcome(Front<rdma::kWelcomeBytes>(input))) {
    const auto again = rdma::DecodeWelcome(rdma::EncodeWelcome(*welcome));
    WEIR_CHECK(again && again->end.queue_pairs == welcome->end.queue_pairs);
  }
  if (const auto end = rdma::DecodeAttach(Front<rdma::kAttachBytes>(input))) {
    const auto again = rdma::DecodeAttach(rdma::EncodeAttach(*end));
    WEIR_CHECK(again && again->memory_address == end->memory_address && again->gid == end->gid);
  }
  if (const auto place = rdma::DecodeHandle({Front<weir::transport::kHandleBytes>(input)})) {
    const auto again = rdma::DecodeHandle(rdma::EncodeHandle(*place));
    WEIR_CHECK(again && again->address == place->address && again->port == place->port);
  }
}

void Written(std::span<const std::byte> input) {
  rdma::Posted posted;
  if (rdma::DecodePosted(Front<rdma::kPostedStride>(input), &posted)) {
    WEIR_CHECK(posted.count >= 1 && posted.count <= weir::transport::kMaxSlots);
    std::array<std::byte, rdma::kPostedStride> bytes{};
    const std::size_t size = rdma::EncodePosted(posted, bytes);
    const auto same = Front<rdma::kPostedStride>(input);
    WEIR_CHECK(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size), same.begin()));
  }
  rdma::Record record;
  if (rdma::DecodeRecord(Front<rdma::kRecordBytes>(input), &record)) {
    WEIR_CHECK(record.total <= weir::transport::kMaxMessageBytes && record.ends <= rdma::kMaxQueuePairs);
  }
  std::uint32_t value = 0;
  std::memcpy(&value, Front<4>(input).data(), 4);
  rdma::Mark mark;
  if (rdma::DecodeMark(value, &mark)) WEIR_CHECK(rdma::EncodeMark(mark) == value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  Greetings(input);
  Written(input);
  return 0;
}
