#include "agents/nccl/coflow_book.h"

#include <fmt/format.h>

#include <bit>

namespace weir::nccl {

std::string CoflowBook::Line(const Entry& entry) {
  return fmt::format(R"({{"comm":"{:#x}","function":"{}","sequence":{},"replay":{},"by":"{}","sends":{},"bytes":{},)"
                     R"("us":{}}})"
                     "\n",
                     entry.key.comm_id, FunctionName(entry.key.function), entry.key.sequence, entry.key.replay,
                     AttributionName(entry.key.attribution), entry.sends, entry.bytes,
                     (entry.last - entry.began) / kMicrosecond);
}

void CoflowBook::End(Entry* entry) {
  if (entry->sends == 0) return;
  if (told_.size() < kReported) told_.push_back(Line(*entry));
  index_.erase(entry->key);
  *entry = {};
}

void CoflowBook::OnSend(const CoflowKey& key, Bytes bytes, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = index_.try_emplace(key, next_);
  if (fresh) {
    const std::size_t slot = next_;
    next_ = (next_ + 1) % kCoflows;
    End(&ring_[slot]);
    ring_[slot].key = key;
    ring_[slot].began = now;
  }
  Entry& entry = ring_[found->second];
  ++entry.sends;
  entry.bytes += bytes;
  entry.last = now;
}

std::string CoflowBook::Report() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < kCoflows; ++i) End(&ring_[(next_ + i) % kCoflows]);
  std::string text;
  for (const std::string& line : told_) text += line;
  told_.clear();
  return text;
}

CoflowKey Ladder::OnSend(std::uint64_t comm_id, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (begin_ || (last_ != 0 && now - last_ > kPause)) ++sequence_;
  begin_ = false;
  last_ = now;
  const Attribution by = function_ == Function::kNone ? Attribution::kIdleGap : Attribution::kAttributes;
  return {comm_id, sequence_, 0, function_, by};
}

void Ladder::OnAttributes(std::uint32_t operations) {
  const std::lock_guard lock(mutex_);
  if (!std::has_single_bit(operations)) return;  // A hint about what may come, not what does.
  const auto bit = static_cast<std::uint8_t>(std::countr_zero(operations));
  const Function function =
      bit <= static_cast<std::uint8_t>(Function::kAllReduce) ? static_cast<Function>(bit) : Function::kSendReceive;
  begin_ = begin_ || function != function_;
  function_ = function;
}

}  // namespace weir::nccl
