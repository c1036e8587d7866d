// The agent's front door, over a real Unix socket.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "agents/host/attach_shell.h"

namespace weir::agents {
namespace {

client::AttachRequest Request(const std::string& job = "llama") {
  client::AttachRequest request{};
  request.magic = client::kSegmentMagic;
  request.version_major = client::kSegmentVersionMajor;
  request.gpus = 8;
  std::memcpy(request.job, job.data(), std::min(job.size(), sizeof(request.job)));
  return request;
}

TEST(ReadAttachRequest, WellFormedIsTaken) {
  client::AttachRequest request = Request();
  std::strcpy(request.tenant, "blue");
  std::strcpy(request.job_class, "scavenger");
  request.weight = 2;
  const auto job = ReadAttachRequest(request);
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->name, "llama");
  EXPECT_EQ(job->tenant, "blue");
  EXPECT_EQ(job->job_class, "scavenger");
  EXPECT_EQ(job->weight, 2);
  EXPECT_EQ(job->gpus, 8u);
}

TEST(ReadAttachRequest, WhatIsWrongIsNamed) {
  const auto reason = [](const std::function<void(client::AttachRequest&)>& spoil) {
    client::AttachRequest request = Request();
    spoil(request);
    const auto job = ReadAttachRequest(request);
    return job ? std::string("taken") : job.error().message();
  };
  EXPECT_NE(reason([](auto& r) { r.job[0] = 0; }).find("WEIR_JOB is empty"), std::string::npos);
  EXPECT_NE(reason([](auto& r) { std::memset(r.job, 'x', sizeof(r.job)); }).find("does not end"), std::string::npos);
  EXPECT_NE(reason([](auto& r) { r.job[1] = '\n'; }).find("cannot be shown"), std::string::npos);
  EXPECT_NE(reason([](auto& r) { std::memset(r.tenant, 'x', sizeof(r.tenant)); }).find("WEIR_TENANT"),
            std::string::npos);
  EXPECT_NE(reason([](auto& r) { std::strcpy(r.job_class, "royal"); }).find("\"royal\""), std::string::npos);
  EXPECT_NE(reason([](auto& r) { r.weight = -1; }).find("WEIR_WEIGHT"), std::string::npos);
  EXPECT_NE(reason([](auto& r) { r.weight = std::numeric_limits<double>::quiet_NaN(); }).find("WEIR_WEIGHT"),
            std::string::npos);
}

class AttachTest : public ::testing::Test {
 protected:
  AttachTest()
      : directory_(std::filesystem::temp_directory_path() / ("weir-attach-" + std::to_string(getpid()))),
        path_((directory_ / "agent.sock").string()),
        memfd_(memfd_create("segment", MFD_CLOEXEC)),
        doorbell_(memfd_create("doorbell", MFD_CLOEXEC)),
        server_(loop_, {[this](const PeerCredentials& peer, const JobInfo& job) { return OnAttach(peer, job); },
                        [this](ProcessId, bool sent) { sent_ = sent; },
                        [](const PeerCredentials&, const std::string& line) { return "echo " + line; }}) {
    std::filesystem::create_directory(directory_);
  }
  ~AttachTest() override {
    server_.Stop();
    close(memfd_);
    close(doorbell_);
    for (const int fd : clients_) close(fd);
    std::filesystem::remove_all(directory_);
  }

  Result<AttachServer::Attached> OnAttach(const PeerCredentials& peer, const JobInfo& job) {
    if (refuse_) return Error(StatusCode::kResourceExhausted, "too many processes");
    peer_ = peer;
    job_ = job;
    return AttachServer::Attached{memfd_, doorbell_, ProcessId(1)};
  }

  int Connect() {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    clients_.push_back(fd);
    return fd;
  }
  template <typename T>
  static void SendTo(int fd, const T& bytes, std::size_t size) {
    EXPECT_EQ(send(fd, &bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }

  struct Received {
    ssize_t size = 0;
    client::AttachReply reply{};
    std::size_t descriptors = 0;
  };
  /// Runs the loop until the answer is there, or the connection ended.
  Received Receive(int fd) {
    Received received;
    do {
      loop_.restart();
      loop_.run_for(std::chrono::milliseconds(5));
      iovec part{&received.reply, sizeof(received.reply)};
      alignas(cmsghdr) std::array<char, 64> control{};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      received.size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
      if (received.size < 0) continue;  // `message` says nothing then.
      const cmsghdr* header = CMSG_FIRSTHDR(&message);
      if (header == nullptr) continue;
      received.descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < received.descriptors; ++i) {
        int each = -1;
        std::memcpy(&each, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        close(each);
      }
    } while (received.size < 0 && errno == EAGAIN);
    return received;
  }

  const std::filesystem::path directory_;
  const std::string path_;
  const int memfd_;
  const int doorbell_;
  boost::asio::io_context loop_;
  AttachServer server_;
  std::vector<int> clients_;
  bool refuse_ = false;
  std::optional<bool> sent_;
  std::optional<PeerCredentials> peer_;
  std::optional<JobInfo> job_;
};

TEST_F(AttachTest, ProcessGetsTwoDescriptorsAndIsKnownByItsCredentials) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int fd = Connect();
  SendTo(fd, Request(), sizeof(client::AttachRequest));
  const Received received = Receive(fd);
  ASSERT_EQ(received.size, static_cast<ssize_t>(sizeof(client::AttachReply)));
  EXPECT_EQ(received.reply.status, 0u);
  EXPECT_EQ(received.reply.size, sizeof(client::Segment));
  EXPECT_EQ(received.descriptors, 2u);
  EXPECT_EQ(peer_->pid, getpid());
  EXPECT_EQ(job_->name, "llama");
  EXPECT_EQ(sent_, true);
}

TEST_F(AttachTest, RequestInPiecesIsPutTogether) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int fd = Connect();
  const client::AttachRequest request = Request();
  std::array<char, sizeof(request)> bytes;
  std::memcpy(bytes.data(), &request, sizeof(request));
  SendTo(fd, bytes[0], 3);
  loop_.run_for(std::chrono::milliseconds(5));
  SendTo(fd, bytes[3], sizeof(request) - 3);
  EXPECT_EQ(Receive(fd).reply.status, 0u);
}

TEST_F(AttachTest, OtherVersionIsToldApart) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int fd = Connect();
  client::AttachRequest request = Request();
  request.version_major = 9;
  SendTo(fd, request, sizeof(request));
  const Received received = Receive(fd);
  EXPECT_EQ(received.reply.status, 1u);
  EXPECT_EQ(received.descriptors, 0u);
  EXPECT_FALSE(job_);
}

TEST_F(AttachTest, RefusalSaysWhy) {
  refuse_ = true;
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int fd = Connect();
  SendTo(fd, Request(), sizeof(client::AttachRequest));
  const Received received = Receive(fd);
  EXPECT_EQ(received.reply.status, 2u);
  EXPECT_STREQ(received.reply.reason, "too many processes");
  EXPECT_EQ(server_.refused(), 1u);
}

TEST_F(AttachTest, GarbageIsRefusedAndLaterOnesAreServed) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int bad = Connect();
  const std::array<char, sizeof(client::AttachRequest)> noise{'x', 'y'};
  SendTo(bad, noise, noise.size());
  EXPECT_NE(Receive(bad).reply.status, 0u);
  const int good = Connect();
  SendTo(good, Request(), sizeof(client::AttachRequest));
  EXPECT_EQ(Receive(good).reply.status, 0u);
}

TEST_F(AttachTest, LineOfJsonIsAnsweredByALine) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int fd = Connect();
  const std::string line = "{\"op\":\"status\"}\n";
  EXPECT_EQ(send(fd, line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
  Received received = Receive(fd);
  ASSERT_GT(received.size, 0);
  std::string text(static_cast<std::size_t>(received.size), 0);
  std::memcpy(text.data(), &received.reply, text.size());
  EXPECT_EQ(text, "echo {\"op\":\"status\"}\n");
}

TEST_F(AttachTest, EndlessLineIsCutOff) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  const int fd = Connect();
  const std::string noise(4096, '{');
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(send(fd, noise.data(), noise.size(), MSG_NOSIGNAL));
    loop_.restart();
    loop_.run_for(std::chrono::microseconds(100));
  }
  EXPECT_LE(Receive(fd).size, 0);
}

TEST_F(AttachTest, StaleSocketFileIsReplaced) {
  {
    boost::asio::io_context other;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    close(fd);  // As if killed: the file stays.
  }
  EXPECT_TRUE(server_.Listen(path_, 0600).ok());
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AttachTest, FolderThatIsMissingIsMade) {
  const std::string folder = (directory_ / "new").string();
  ASSERT_TRUE(server_.Listen(folder + "/agent.sock", 0666).ok());
  struct stat info;
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u);
}

TEST_F(AttachTest, FolderThatCannotBeMadeIsNamed) {
  const std::string folder = (directory_ / "new" / "deeper").string();
  const Status status = server_.Listen(folder + "/agent.sock", 0666);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(folder + " "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("--socket"), std::string::npos) << status.message();
}

TEST_F(AttachTest, LiveAgentIsNotReplaced) {
  ASSERT_TRUE(server_.Listen(path_, 0666).ok());
  AttachServer second(loop_, {});
  const Status status = second.Listen(path_, 0666);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  second.Stop();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(AttachTest, FileThatIsNoSocketIsLeftAlone) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(server_.Listen(path_, 0666).code(), StatusCode::kAlreadyExists);
}

TEST_F(AttachTest, PathTooLongIsRefused) {
  EXPECT_EQ(server_.Listen("/tmp/" + std::string(200, 'x'), 0666).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::agents
