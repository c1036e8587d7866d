#pragma once

#include <array>
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

  RtePort() = default;
  Status Configure(const EthdevSettings& settings);
  Status ChooseMtu(std::size_t wanted, std::size_t device_max);
  Status StartQueues(std::uint32_t descriptors);

  std::string device_;
  std::string driver_;
  MacAddress mac_{};
  std::size_t mtu_ = 0;
  std::uint16_t port_ = 0;
  int owner_ = 0;  ///< Process.
  bool started_ = false;
  rte_mempool* pool_ = nullptr;

  rte_mbuf* reserved_ = nullptr;
  std::array<rte_mbuf*, kBurst> sending_{};
  std::uint16_t sending_count_ = 0;
  std::array<rte_mbuf*, kBurst> received_{};
  std::uint16_t received_count_ = 0;
};

}  // namespace weir::transport::dpdk
