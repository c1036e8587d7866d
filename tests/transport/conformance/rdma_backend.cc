// The RDMA backend on real verbs: two Soft-RoCE devices on the two ends of a cable, as tests/vm makes them.
#include <stdexcept>

#include "tests/transport/conformance/backend.h"
#include "transport/rdma/rdma_transport.h"

namespace weir::transport {
namespace {

class RdmaBackend final : public Backend {
 public:
  RdmaBackend(RdmaOptions options, std::uint32_t requests) {
    options.requests = requests;
    // The devices live in real time, and these tests do not: nothing is dead here.
    options.dead_after = 3600 * kSecond;
    left_ = Make(options, "=rxe0", "left/1");
    right_ = Make(options, "=rxe1", "right/2");
  }
  Transport& left() override { return *left_; }
  Transport& right() override { return *right_; }
  /// The devices live in real time and are emulated: what takes them hundreds of rounds must not look slow.
  Nanoseconds step() const override { return 300; }

 private:
  std::unique_ptr<Transport> Make(RdmaOptions options, const char* device, const char* identity) {
    options.devices = device;
    options.identity = identity;
    auto made = MakeRdmaTransport(options, clock());
    if (!made) throw std::runtime_error(made.error().ToString());
    return std::move(*made);
  }

  std::unique_ptr<Transport> left_;
  std::unique_ptr<Transport> right_;
};

BackendKind Kind(const char* name, const RdmaOptions& options) {
  return {name, [options](std::uint32_t requests) { return std::make_unique<RdmaBackend>(options, requests); },
          8u << 20};
}

/// A window that a message of some MiB does not get through in a few calls, as the tests of closing expect.
RdmaOptions Usual() {
  RdmaOptions options;
  options.window_bytes = 256 * 1024;
  return options;
}

RdmaOptions Single() {
  RdmaOptions options = Usual();
  options.queue_pairs = 1;
  return options;
}

/// Everything that can be cut is cut: pieces of 4 KiB over many queue pairs of several classes, few at a time.
RdmaOptions Shredded() {
  RdmaOptions options;
  options.queue_pairs = 4;
  options.traffic_classes = {160, 96, 32};
  options.stripe_bytes = 4096;
  options.window_bytes = 16 * 1024;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Rdma, Conformance,
                         testing::Values(Kind("usual", Usual()), Kind("single", Single()),
                                         Kind("shredded", Shredded())),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weir::transport
