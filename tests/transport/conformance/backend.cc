#include "tests/transport/conformance/backend.h"

#include <algorithm>
#include <cstring>
#include <ostream>
#include <random>

namespace weir::transport {

void PrintTo(const BackendKind& kind, std::ostream* out) {
  *out << kind.name;
}

bool Conformance::Until(const std::function<bool()>& done) {
  for (int i = 0; i < 20'000'000; ++i) {
    if (done()) return true;
    clock().Advance(backend_->step());
  }
  return false;
}

Pair Conformance::Connect(std::uint32_t slots, Lane* lane, bool back) {
  Pair pair;
  Transport& from = back ? backend_->right() : backend_->left();
  Transport& to = back ? backend_->left() : backend_->right();
  auto listener = to.Listen(0, slots);
  EXPECT_TRUE(listener.has_value()) << listener.error().ToString();
  auto connector = from.Connect(0, (*listener)->handle(), lane);
  EXPECT_TRUE(connector.has_value()) << connector.error().ToString();
  const bool ready = Until([&] {
    if (pair.sender == nullptr) {
      auto sender = (*connector)->Poll();
      EXPECT_TRUE(sender.has_value()) << sender.error().ToString();
      pair.sender = std::move(*sender);
    }
    if (pair.receiver == nullptr) {
      auto receiver = (*listener)->Accept();
      EXPECT_TRUE(receiver.has_value()) << receiver.error().ToString();
      pair.receiver = std::move(*receiver);
    }
    return pair.sender != nullptr && pair.receiver != nullptr;
  });
  EXPECT_TRUE(ready);
  return pair;
}

Outcome Conformance::Send(Sender* sender, std::span<const std::byte> data, std::int32_t tag, Request** request) {
  const Part part{data.data(), data.size(), {}};
  return sender->Isend(std::span(&part, 1), tag, request);
}

Outcome Conformance::Receive(Receiver* receiver, std::span<std::byte> data, Request** request) {
  const Slot slot{data.data(), data.size(), 0, {}};
  return receiver->Irecv(std::span(&slot, 1), request);
}

bool Conformance::Works(Pair* pair) {
  const auto data = Noise(100, 5);
  std::vector<std::byte> got(200);
  Request* receive = nullptr;
  Request* send = nullptr;
  if (Receive(pair->receiver.get(), got, &receive) != Outcome::kDone) return false;
  if (!Until([&] { return Send(pair->sender.get(), data, 0, &send) == Outcome::kDone; })) return false;
  Bytes size = 0;
  bool sent = false;
  bool received = false;
  const bool done = Until([&] {
    sent = sent || pair->sender->Test(send, {}) == Outcome::kDone;
    received = received || pair->receiver->Test(receive, std::span(&size, 1)) == Outcome::kDone;
    return sent && received;
  });
  got.resize(size);
  return done && got == data;
}

std::vector<std::byte> Noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

}  // namespace weir::transport
