// A port whose addresses change: new channels use those that it has now.
#include <algorithm>

#include "tests/transport/rdma/vm_ends.h"

namespace weir::transport::rdma {
namespace {

/// A new channel moves a message.
void ExpectMessage(VmEnd* from, VmEnd* to) {
  const auto listener = to->Listen();
  auto [sender, receiver] = Join(listener.get(), from->Connect(listener->handle()).get());
  ASSERT_TRUE(sender != nullptr && receiver != nullptr);
  const std::vector<std::byte> data(100'000, std::byte{0x5a});
  std::vector<std::byte> room(data.size());
  const Part part{data.data(), data.size(), {}};
  const Slot slot{room.data(), room.size(), 0, {}};
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
  ASSERT_EQ(sender->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  bool sent = false;
  bool received = false;
  EXPECT_TRUE(Within(20 * kSecond,
                     [&, &sender = sender, &receiver = receiver] {
                       sent = sent || sender->Test(send, {}) == Outcome::kDone;
                       received = received || receiver->Test(receive, {}) == Outcome::kDone;
                       return sent && received;
                     }))
      << sender->failure().ToString() << receiver->failure().ToString();
  EXPECT_EQ(room, data);
}

/// The address that the port would use now.
std::string Chosen(Port* port) {
  const auto choice = port->Choose({});
  return choice ? AddressOf(choice->entry.gid).ToString() : choice.error().ToString();
}

TEST(RdmaAddress, ThatGoesAndComesBackWithItsPortIsReadAnew) {
  std::vector<std::string> notes;
  RdmaOptions options;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  VmEnd left("=rxe0", "left/1", options);
  VmEnd right("=rxe1", "right/2");
  ASSERT_EQ(Chosen(left.port.get()), "10.77.0.1");
  ExpectMessage(&left, &right);

  Shell("/usr/sbin/ip link set va down && /usr/sbin/ip addr del 10.77.0.1/24 dev va");
  EXPECT_TRUE(Within(10 * kSecond, [&] { return Chosen(left.port.get()) != "10.77.0.1"; }));
  Shell("/usr/sbin/ip link set va up && /usr/sbin/ip addr add 10.77.0.9/24 dev va");
  EXPECT_TRUE(Within(10 * kSecond, [&] { return Chosen(left.port.get()) == "10.77.0.9"; })) << Chosen(left.port.get());
  Shell(
      "/usr/sbin/ip addr del 10.77.0.9/24 dev va && /usr/sbin/ip addr add 10.77.0.1/24 dev va && "
      "/usr/sbin/ip route replace 10.77.0.2/32 dev va src 10.77.0.1 table 101 && "
      "/usr/sbin/ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev va nud permanent");
  EXPECT_TRUE(Within(10 * kSecond, [&] { return Chosen(left.port.get()) == "10.77.0.1"; })) << Chosen(left.port.get());

  ExpectMessage(&left, &right);
  ExpectMessage(&right, &left);
  for (const char* said : {"address 10.77.0.9", "port error", "port active", "GID table change"}) {
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(said) != std::string::npos;
    })) << said;
  }
}

}  // namespace
}  // namespace weir::transport::rdma
