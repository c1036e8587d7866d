#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coflow/status.h"
#include "tools/weir-perf/rendezvous.h"
#include "transport/pacer/pacer.h"
#include "transport/transport.h"

namespace weir::tools {

enum class TestKind { kBandwidth, kLatency, kSoak, kCoflows };

/// One test, as the two ends agree on it.
struct Plan {
  TestKind kind = TestKind::kBandwidth;
  Bytes size = 0;  ///< Of a message; soak: of everything, each way.
  /// Latency: round trips at most, an empty message ends them before. Soak: seed. Coflows: how many.
  std::uint32_t count = 0;
};

inline constexpr Bytes kSizeMax = Bytes{4} << 30;   ///< Of a message.
inline constexpr Bytes kTotalMax = Bytes{1} << 40;  ///< Of a soak.
inline constexpr std::uint32_t kCountMax = 10'000'000;

std::string PlanToText(const Plan& plan);
/// Error kProtocol with what is wrong: it comes from the other host.
Result<Plan> PlanFromText(const std::string& text);

/// What is measured over: a channel to the other end, and one back.
struct Channels {
  std::unique_ptr<transport::Sender> sender;
  std::unique_ptr<transport::Receiver> receiver;
};

/// The one who asks. Makes both channels for a plan; `lane` may be null. Errors: kUnavailable and what the other end
/// said.
Result<Channels> AskFor(const Plan& plan, Rendezvous* rendezvous, transport::Transport* transport,
                        transport::Lane* lane);

/// The other one: serves plans until the asker leaves. Returns ok then, else why it could not go on.
Status Serve(Rendezvous* rendezvous, transport::Transport* transport);

/// The other end's CPU seconds, which end each test. Error kUnavailable with what it said instead.
Result<double> EndOfTest(Rendezvous* rendezvous);

/// One message, to its end. Errors: why the channel failed.
Status SendOne(transport::Sender* sender, const std::vector<std::byte>& data, transport::MemoryId memory = {});
Status ReceiveOne(transport::Receiver* receiver, std::vector<std::byte>* room, Bytes* size,
                  transport::MemoryId memory = {});

/// Receives that are posted before their messages come, as programs have them: what posting one costs, and what the
/// other end must be told of it, is then nobody's wait. Its rooms' bytes are never looked at. Owned by a test; the
/// channel outlives it.
class Ahead {
 public:
  Ahead(transport::Receiver* receiver, Bytes size);

  /// Posts as many as are missing. Errors: why the channel failed.
  Status Post();
  /// Waits for the oldest one's message, and says its size. At least one is posted.
  Status Take(Bytes* size);

 private:
  static constexpr std::size_t kPosted = 2;

  transport::Receiver& receiver_;
  std::array<std::vector<std::byte>, kPosted> rooms_;
  std::array<transport::MemoryId, kPosted> memory_;
  std::array<transport::Request*, kPosted> requests_{};
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
};

/// Registers memory for as long as the channel lives, as a training process would; 0 where the channel refuses, which
/// then registers it for each message.
transport::MemoryId Known(transport::Channel* channel, const std::vector<std::byte>& memory);

/// Seconds of CPU of the calling thread.
double ThreadCpuSeconds();

}  // namespace weir::tools
