#include "tests/transport/conformance/backend.h"
#include "transport/fake/fake_network.h"

namespace weir::transport {
namespace {

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(FakeOptions options)
      : network_(options, &clock()),
        left_(MakeFakeTransport(&network_, "left/1")),
        right_(MakeFakeTransport(&network_, "right/2")) {}
  Transport& left() override { return *left_; }
  Transport& right() override { return *right_; }

 private:
  FakeNetwork network_;
  std::unique_ptr<Transport> left_;
  std::unique_ptr<Transport> right_;
};

BackendKind Kind(const char* name, FakeOptions options) {
  return {name,
          [options](std::uint32_t requests) {
            FakeOptions own = options;
            own.requests = requests;
            return std::make_unique<FakeBackend>(own);
          },
          8u << 20};
}

FakeOptions Hostile() {
  FakeOptions options;
  options.seed = 11;
  options.loss = 0.05;
  options.duplication = 0.05;
  options.delay_min = 5 * kMicrosecond;
  options.delay_max = 300 * kMicrosecond;
  options.partial = true;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Fake, Conformance, testing::Values(Kind("clean", {}), Kind("hostile", Hostile())),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weir::transport
