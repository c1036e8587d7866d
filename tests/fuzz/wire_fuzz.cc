// Bytes from a peer: cut into frames, each read as a message of either side. Whatever is read must survive being
// written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "coflow/check.h"
#include "coflow/wire/frame.h"
#include "coflow/wire/weir.pb.h"

namespace {

using weir::wire::FrameView;

template <typename Message>
void ReadMessage(std::string_view payload) {
  Message message;
  if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
  const std::string written = message.SerializeAsString();
  Message again;
  WEIR_CHECK(again.ParseFromString(written));
  WEIR_CHECK(again.kind_case() == message.kind_case());
  WEIR_CHECK(again.SerializeAsString() == written);
}

void CheckFramedAgain(const FrameView& frame) {
  std::string bytes;
  weir::wire::AppendFrame(frame.payload, &bytes);
  const auto again = weir::wire::NextFrame(bytes);
  WEIR_CHECK(again && again->complete && again->size == bytes.size() && again->payload == frame.payload);
  // One byte less is never a whole frame.
  const auto shorter = weir::wire::NextFrame(std::string_view(bytes).substr(0, bytes.size() - 1));
  WEIR_CHECK(shorter && !shorter->complete);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  ReadMessage<weir::wire::AgentMessage>(rest);
  ReadMessage<weir::wire::CoordinatorMessage>(rest);
  while (true) {
    const auto frame = weir::wire::NextFrame(rest);
    if (!frame || !frame->complete) break;
    WEIR_CHECK(frame->size <= rest.size() && frame->payload.size() <= weir::wire::kMaxFrameBytes);
    CheckFramedAgain(*frame);
    ReadMessage<weir::wire::AgentMessage>(frame->payload);
    ReadMessage<weir::wire::CoordinatorMessage>(frame->payload);
    rest.remove_prefix(frame->size);
  }
  return 0;
}
