// What the library says to NCCL about a peer that is no peer: its table v12, called as NCCL does.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "agents/nccl/abi/net.h"
#include "transport/tcp/wire.h"

namespace weir::nccl {
namespace {

std::mutex said_mutex;
std::string said;

__attribute__((format(printf, 5, 6))) void Keep(abi::LogLevel, unsigned long, const char*, int, const char* format,
                                                ...) {
  std::array<char, 1024> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::lock_guard lock(said_mutex);
  said += std::string(text.data()) + "\n";
}

/// Answers the first bytes of each connection with `answer`, whatever they are.
class Stranger {
 public:
  explicit Stranger(std::span<const std::byte> answer) : answer_(answer.begin(), answer.end()) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    server_ = std::thread([this] { Serve(); });
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    shutdown(listener_, SHUT_RDWR);
    server_.join();
    close(listener_);
  }
  std::uint16_t port() const { return port_; }

 private:
  void Serve() {
    while (true) {
      const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) return;
      std::array<std::byte, transport::tcp::kHelloBytes> hello{};
      static_cast<void>(recv(peer, hello.data(), hello.size(), MSG_WAITALL));
      static_cast<void>(send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL));
      close(peer);
    }
  }

  const std::vector<std::byte> answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::thread server_;
};

class NcclConnect : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("WEIR_NCCL_CONNECT_WITHIN_MS", "2000", 1);
    void* const library = dlopen(WEIR_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    net = static_cast<abi::NetV12*>(dlsym(library, "ncclNetPlugin_v12"));
    ASSERT_NE(net, nullptr);
  }

  NcclConnect() {
    said.clear();
    abi::Config config{abi::kTrafficClassUnset};
    EXPECT_EQ(net->init(&context_, 0x77, &config, Keep, nullptr), abi::Result::kSuccess);
    EXPECT_EQ(net->listen(context_, 0, handle_.data(), &listener_), abi::Result::kSuccess);
  }
  ~NcclConnect() override {
    EXPECT_EQ(net->close_listen(listener_), abi::Result::kSuccess);
    EXPECT_EQ(net->finalize(context_), abi::Result::kSuccess);
  }

  /// The handle, with another port.
  void PointAt(std::uint16_t port) {
    transport::Handle address;
    std::memcpy(address.bytes.data(), handle_.data(), address.bytes.size());
    auto place = transport::tcp::DecodeHandle(address);
    ASSERT_TRUE(place.has_value());
    place->port = port;
    address = transport::tcp::EncodeHandle(*place);
    std::memcpy(handle_.data(), address.bytes.data(), address.bytes.size());
  }
  /// What connect() says in the end; each call returns at once.
  abi::Result Outcome() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      void* comm = nullptr;
      const abi::Result result = net->connect(context_, 0, handle_.data(), &comm, nullptr);
      if (result != abi::Result::kSuccess || comm != nullptr) return result;
    }
    ADD_FAILURE() << "neither connected nor refused";
    return abi::Result::kSuccess;
  }
  void ExpectRefusal(const std::string& why) {
    EXPECT_EQ(Outcome(), abi::Result::kRemote);
    const std::lock_guard lock(said_mutex);
    const std::string own = std::to_string(getpid());
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_NE(said.find("/" + own + ", connecting to "), std::string::npos) << "names us: " << said;
    EXPECT_NE(said.find("/" + own + " (127.0.0.1:"), std::string::npos) << "and whom we meant: " << said;
  }

  static abi::NetV12* net;
  void* context_ = nullptr;
  void* listener_ = nullptr;
  std::array<char, abi::kHandleBytes> handle_{};
};

abi::NetV12* NcclConnect::net = nullptr;

TEST_F(NcclConnect, AStrangerIsRefused) {
  const std::string text =
      "SSH-2.0-OpenSSH_9.2p1 Debian\r\n and more than a greeting of ours would ever have, for sure\r\n";
  const Stranger stranger(std::as_bytes(std::span(text)));
  PointAt(stranger.port());
  ExpectRefusal("what came is no greeting of Weir");
}

TEST_F(NcclConnect, AnotherVersionIsRefused) {
  transport::tcp::Welcome welcome;
  welcome.verdict = transport::tcp::Verdict::kOtherVersion;
  welcome.identity = "other/1";
  const Stranger stranger(transport::tcp::EncodeWelcome(welcome));
  PointAt(stranger.port());
  ExpectRefusal("other/1 there does not speak our version");
}

TEST_F(NcclConnect, NobodyThereIsARemoteError) {
  std::uint16_t port = 0;
  {
    const Stranger gone({});
    port = gone.port();
  }
  PointAt(port);
  ExpectRefusal("");
}

TEST_F(NcclConnect, AHandleOfSomebodyElseIsAnArgument) {
  handle_.fill('x');
  void* comm = nullptr;
  std::memset(handle_.data() + transport::kHandleBytes, 0, sizeof(std::uint64_t));  // Not begun.
  EXPECT_EQ(net->connect(context_, 0, handle_.data(), &comm, nullptr), abi::Result::kInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  const std::lock_guard lock(said_mutex);
  EXPECT_NE(said.find("handle"), std::string::npos) << said;
}

}  // namespace
}  // namespace weir::nccl
