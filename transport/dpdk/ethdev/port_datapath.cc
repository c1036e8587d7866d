// Bursts out of and into an ethdev: no allocation but of its own pool, no lock, no log.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>

#include "transport/dpdk/ethdev/interrupts.h"
#include "transport/dpdk/ethdev/port.h"

namespace weir::transport::dpdk {

std::byte* RtePort::Reserve() noexcept {
  if (sending_count_ == kBurst) Flush();
  if (reserved_ == nullptr) reserved_ = rte_pktmbuf_alloc(pool_);
  return reserved_ == nullptr ? nullptr : rte_pktmbuf_mtod(reserved_, std::byte*);
}

void RtePort::Commit(std::size_t size) noexcept {
  reserved_->data_len = static_cast<std::uint16_t>(size);
  reserved_->pkt_len = static_cast<std::uint32_t>(size);
  sending_[sending_count_++] = reserved_;
  reserved_ = nullptr;
}

/// What the device does not take is lost, as it would be in any queue on the way, and the protocol repeats it.
void RtePort::Flush() noexcept {
  if (sending_count_ == 0) return;
  std::uint16_t sent = 0;
  const PortTurns::Turn turn(port_);
  for (int tries = 0; turn && started_ && sent < sending_count_ && tries < kSendTries; ++tries) {
    sent = static_cast<std::uint16_t>(
        sent + rte_eth_tx_burst(port_, 0, sending_.data() + sent, static_cast<std::uint16_t>(sending_count_ - sent)));
  }
  if (sent < sending_count_) rte_pktmbuf_free_bulk(sending_.data() + sent, sending_count_ - sent);
  sending_count_ = 0;
}

std::size_t RtePort::Receive(std::span<std::span<const std::byte>> frames) noexcept {
  if (received_count_ > 0) rte_pktmbuf_free_bulk(received_.data(), received_count_);
  const auto most = static_cast<std::uint16_t>(std::min<std::size_t>(frames.size(), kBurst));
  {
    const PortTurns::Turn turn(port_);
    received_count_ = turn && started_ ? rte_eth_rx_burst(port_, 0, received_.data(), most) : std::uint16_t{0};
  }
  if (asks_ && received_count_ == 0) AskAgain();
  std::size_t count = 0;
  for (std::uint16_t i = 0; i < received_count_; ++i) {
    // In several pieces: larger than the MTU that we set, so it is not from a peer of ours.
    if (received_[i]->nb_segs != 1) continue;
    frames[count++] = {rte_pktmbuf_mtod(received_[i], const std::byte*), received_[i]->data_len};
  }
  return count;
}

}  // namespace weir::transport::dpdk
