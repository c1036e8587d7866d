#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "transport/fake/fake_network.h"
#include "transport/fake/fake_receiver.h"
#include "transport/fake/fake_sender.h"

namespace weir::transport {
namespace {

constexpr std::uint64_t kMagic = 0x454b414652494557;  // "WEIRFAKE"

/// What a handle says. Both ends are in this process: plain copies will do.
struct Address {
  std::uint64_t magic = kMagic;
  std::uint64_t door = 0;
  std::uint32_t slots = 1;
  char identity[32] = {};
};
static_assert(sizeof(Address) <= kHandleBytes);

class FakeListener final : public Listener {
 public:
  FakeListener(FakeNetwork* network, const std::string& identity, std::uint32_t slots) : network_(*network) {
    address_.door = network_.next_door++;
    address_.slots = slots;
    identity.copy(address_.identity, sizeof(address_.identity) - 1);
    network_.doors[address_.door];
    std::memcpy(handle_.bytes.data(), &address_, sizeof(address_));
  }
  ~FakeListener() override {
    for (const auto& wire : network_.doors[address_.door]) {
      wire->receiver.closed = true;
      wire->receiver.closed_at = network_.ArrivesAt();
    }
    network_.doors.erase(address_.door);
  }
  const Handle& handle() const override { return handle_; }

  Result<std::unique_ptr<Receiver>> Accept() override {
    auto& waiting = network_.doors[address_.door];
    if (waiting.empty()) return nullptr;
    auto wire = std::move(waiting.front());
    waiting.pop_front();
    return std::make_unique<fake::FakeReceiver>(&network_, std::move(wire));
  }

 private:
  FakeNetwork& network_;
  Address address_;
  Handle handle_;
};

class FakeConnector final : public Connector {
 public:
  FakeConnector(FakeNetwork* network, const Address& address, std::string identity, Lane* lane)
      : network_(*network),
        address_(address),
        identity_(std::move(identity)),
        lane_(lane),
        ready_(network_.ArrivesAt()) {}

  Result<std::unique_ptr<Sender>> Poll() override {
    if (network_.Now() < ready_) return nullptr;
    const auto door = network_.doors.find(address_.door);
    if (door == network_.doors.end()) {
      return Error(StatusCode::kUnavailable,
                   fmt::format("{}, connecting to {}: nobody listens there", identity_, address_.identity));
    }
    auto wire = std::make_shared<fake::Wire>();
    wire->slots = address_.slots;
    wire->sender.identity = identity_;
    wire->receiver.identity = address_.identity;
    door->second.push_back(wire);
    return std::make_unique<fake::FakeSender>(&network_, std::move(wire), lane_);
  }

 private:
  FakeNetwork& network_;
  Address address_;
  std::string identity_;
  Lane* lane_;
  Nanoseconds ready_;
};

class FakeTransport final : public Transport {
 public:
  FakeTransport(FakeNetwork* network, std::string identity) : network_(*network), identity_(std::move(identity)) {
    Device device;
    device.name = "fake0";
    device.address = identity_;
    device.requests = network->options().requests;
    device.slots = kMaxSlots;
    devices_.push_back(std::move(device));
  }
  const char* name() const override { return "fake"; }
  const std::vector<Device>& devices() const override { return devices_; }

  Result<std::unique_ptr<Listener>> Listen(std::size_t device, std::uint32_t slots) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    if (slots < 1 || slots > kMaxSlots) {
      return Error(StatusCode::kInvalidArgument, fmt::format("slots: found {}, allowed: 1 to {}", slots, kMaxSlots));
    }
    return std::make_unique<FakeListener>(&network_, identity_, slots);
  }

  Result<std::unique_ptr<Connector>> Connect(std::size_t device, const Handle& handle, Lane* lane) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    Address address;
    std::memcpy(&address, handle.bytes.data(), sizeof(address));
    if (address.magic != kMagic) {
      return Error(StatusCode::kInvalidArgument, "this is no handle of a fake listener; give the one that Listen made");
    }
    return std::make_unique<FakeConnector>(&network_, address, identity_, lane);
  }

 private:
  Status CheckDevice(std::size_t device) const {
    if (device == 0) return Status::Ok();
    return Status(StatusCode::kNotFound, fmt::format("device {} does not exist; there are 1", device));
  }

  FakeNetwork& network_;
  std::string identity_;
  std::vector<Device> devices_;
};

}  // namespace

void FakeNetwork::Cut(bool cut) {
  if (cut && !cut_) cut_since_ = Now();
  cut_ = cut;
}

std::unique_ptr<Transport> MakeFakeTransport(FakeNetwork* network, std::string identity) {
  return std::make_unique<FakeTransport>(network, std::move(identity));
}

}  // namespace weir::transport
