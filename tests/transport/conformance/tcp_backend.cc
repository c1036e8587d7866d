#include "tests/transport/conformance/backend.h"
#include "transport/tcp/tcp_transport.h"

namespace weir::transport {
namespace {

class TcpBackend final : public Backend {
 public:
  TcpBackend(TcpOptions options, std::uint32_t requests) {
    options.interfaces = "=lo";
    options.requests = requests;
    options.identity = "left/1";
    left_ = std::move(MakeTcpTransport(options, clock()).value());
    options.identity = "right/2";
    right_ = std::move(MakeTcpTransport(options, clock()).value());
  }
  Transport& left() override { return *left_; }
  Transport& right() override { return *right_; }

 private:
  std::unique_ptr<Transport> left_;
  std::unique_ptr<Transport> right_;
};

BackendKind Kind(const char* name, const TcpOptions& options) {
  return {name, [options](std::uint32_t requests) { return std::make_unique<TcpBackend>(options, requests); },
          96u << 20};
}

TcpOptions Family(const char* family) {
  TcpOptions options;
  options.family = family;
  return options;
}

/// Everything that can be cut is cut: chunks of 4 KiB over many connections, all of which have a share of the window.
TcpOptions Shredded() {
  TcpOptions options;
  options.streams = 8;
  options.stripe_bytes = 4096;
  options.unsent_bytes = 4096;
  options.in_kernel_bytes = 8 * 1024 * 1024;
  return options;
}

bool HasIpv6() {
  const auto found = ListInterfaces();
  return found.has_value() && SelectInterfaces(*found, "=lo", "AF_INET6").has_value();
}

std::vector<BackendKind> Kinds() {
  TcpOptions one;
  one.streams = 1;
  std::vector<BackendKind> kinds{Kind("ipv4", Family("AF_INET")), Kind("single", one), Kind("shredded", Shredded())};
  if (HasIpv6()) kinds.push_back(Kind("ipv6", Family("AF_INET6")));
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Tcp, Conformance, testing::ValuesIn(Kinds()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weir::transport
