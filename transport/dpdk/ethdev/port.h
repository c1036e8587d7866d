#pragma once

#include <array>
#include <chrono>
#include <string>

#include "transport/dpdk/ethdev/ethdev.h"

struct rte_mbuf;
struct rte_mempool;

namespace weir::transport::dpdk {

/// One queue pair of an ethdev. Setup in port.cc, bursts in port_datapath.cc.
class RtePort final : public EthdevPort {
 public:
  static Result<std::unique_ptr<EthdevPort>> Open(const EthdevSettings& settings);
  ~RtePort() override;

  MacAddress mac() const noexcept override { return mac_; }
  std::size_t frame_bytes() const noexcept override { return mtu_ + 14; }
  std::byte* Reserve() noexcept override;
  void Commit(std::size_t size) noexcept override;
  void Flush() noexcept override;
  std::size_t Receive(std::span<std::span<const std::byte>> frames) noexcept override;

  const char* driver() const noexcept override { return driver_.c_str(); }
  bool link_up() noexcept override;
  std::size_t mtu() const noexcept override { return mtu_; }

 private:
  static constexpr std::uint16_t kBurst = 64;
  static constexpr int kSendTries = 64;
  static constexpr std::chrono::milliseconds kAskAgain{250};

  RtePort() = default;
  Status Configure(const EthdevSettings& settings);
  Status ChooseMtu(std::size_t wanted, std::size_t device_max);
  Status TakeRoom(std::size_t wanted);
  Status StartQueues(std::uint32_t descriptors);
  bool ServerMayBeThere() const noexcept;
  /// A client of memif asks its server once, when it is started: where that was not there yet, or went, it is started
  /// again, each kAskAgain. Called when nothing came.
  void AskAgain() noexcept;

  std::string device_;
  std::string driver_;
  MacAddress mac_{};
  std::size_t mtu_ = 0;
  std::uint16_t port_ = 0;
  int owner_ = 0;         ///< Process.
  bool started_ = false;  ///< False: no bursts.
  bool asks_ = false;     ///< It is a client of memif,
  std::string server_;    ///< and looks for a server here; empty: it cannot look.
  std::chrono::steady_clock::time_point ask_at_{};
  rte_mempool* pool_ = nullptr;

  rte_mbuf* reserved_ = nullptr;
  std::array<rte_mbuf*, kBurst> sending_{};
  std::uint16_t sending_count_ = 0;
  std::array<rte_mbuf*, kBurst> received_{};
  std::uint16_t received_count_ = 0;
};

}  // namespace weir::transport::dpdk
