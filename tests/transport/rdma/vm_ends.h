#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/clock.h"
#include "transport/rdma/connector.h"
#include "transport/rdma/listener.h"
#include "transport/rdma/port.h"

namespace weir::transport::rdma {

/// One of the two devices of the emulated machine, on the real clock, with what a test wants to look into.
struct VmEnd {
  VmEnd(const char* device, const char* identity, RdmaOptions given = {}) : options(std::move(given)) {
    options.devices = device;
    options.identity = identity;
    const auto verbs = LoadVerbs();
    if (!verbs) throw std::runtime_error(verbs.error().ToString());
    auto opened = OpenPorts(*verbs, &options);
    if (!opened) throw std::runtime_error(opened.error().ToString());
    port = std::move(opened->front());
  }

  std::unique_ptr<RdmaListener> Listen(std::uint32_t slots = 1) {
    return std::move(RdmaListener::Start(options, port.get(), slots, &SteadyClock()).value());
  }
  std::unique_ptr<Connector> Connect(const Handle& handle) {
    return std::move(
        RdmaConnector::Start(options, port.get(), DecodeHandle(handle).value(), nullptr, &SteadyClock()).value());
  }

  RdmaOptions options;
  std::unique_ptr<Port> port;
};

/// On the machine that the test runs in, as root.
inline void Shell(const char* command) {
  ASSERT_EQ(std::system(command), 0) << command;
}

/// Polls until `done`, for `within` at most; false when it never is.
inline bool Within(Nanoseconds within, const std::function<bool()>& done) {
  const Nanoseconds end = SteadyClock().Now() + within;
  while (!done()) {
    if (SteadyClock().Now() > end) return false;
  }
  return true;
}

/// Joins a listener and a connector.
inline std::pair<std::unique_ptr<Sender>, std::unique_ptr<Receiver>> Join(Listener* listener, Connector* connector) {
  std::pair<std::unique_ptr<Sender>, std::unique_ptr<Receiver>> ends;
  EXPECT_TRUE(Within(20 * kSecond, [&] {
    if (ends.first == nullptr) ends.first = std::move(connector->Poll().value());
    if (ends.second == nullptr) ends.second = std::move(listener->Accept().value());
    return ends.first != nullptr && ends.second != nullptr;
  }));
  return ends;
}

}  // namespace weir::transport::rdma
