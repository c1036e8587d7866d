#include "tools/weir-perf/emulate/ends.h"

#include <algorithm>

namespace weir::tools::emulate {
namespace {

bool Failed(const char* call, abi::Result code, CallFailure* failure) {
  if (code == abi::Result::kSuccess) return false;
  *failure = {call, code};
  return true;
}

}  // namespace

void End::BeginOperation(void* collective, bool is_send) {
  if (feed != nullptr && total > 0) operation = feed->StartOp(collective, channel, peer, total, slot_bytes, is_send);
}

void End::EndOperation() {
  if (feed != nullptr) feed->Stop(operation);
  operation = nullptr;
}

void End::BeginStep(std::uint64_t step, std::uint32_t state) {
  if (feed == nullptr) return;
  transfers[step % kSlots] = {feed->StartStep(operation, step), this};
  feed->Record(transfers[step % kSlots].step, state);
}

void End::EndStep(std::uint64_t step) {
  if (feed != nullptr) feed->Stop(transfers[step % kSlots].step);
}

void SendEnd::Begin(std::uint64_t steps, std::uint64_t steps_together, void* collective) {
  total = steps;
  group = steps_together;
  opened_ = posted_ = sent_ = done_ = 0;
  BeginOperation(collective, true);
}

bool SendEnd::Progress(Net* net, int rank, RankTale* tale, CallFailure* failure) {
  bool moved = false;
  for (; opened_ < total && opened_ - done_ < kSlots; ++opened_) BeginStep(opened_, abi::kStateSendWaitsForGpu);
  while (sent_ < total) {
    // Of those that are received together, the last goes first: the tag must find its place.
    const std::uint64_t begin = sent_ / group * group;
    const std::uint64_t end = GroupEnd(sent_);
    if (posted_ < end) break;
    const std::uint64_t step = begin + (end - 1 - sent_);
    const std::uint64_t slot = step % kSlots;
    const int tag = group > 1 ? static_cast<int>(step - begin) : rank;
    void* request = this;  // Stale on entry, as NCCL's is.
    // Without a profiler NCCL hands over its record all the same, and the callback does nothing.
    if (Failed("isend", net->Isend(comm, Slot(step), sizes[slot], tag, memory, &transfers[slot], &request), failure)) {
      return false;
    }
    if (request == nullptr) {
      ++tale->send_nulls;
      break;
    }
    requests[slot] = request;
    complete_[slot] = false;
    if (feed != nullptr) feed->Record(transfers[slot].step, abi::kStateSendWaitsForNetwork);
    ++sent_;
    ++tale->sends;
    tale->bytes_sent += sizes[slot];
    moved = true;
  }
  for (std::uint64_t step = done_; step < sent_ || (step < posted_ && step < GroupEnd(done_)); ++step) {
    const std::uint64_t slot = step % kSlots;
    if (requests[slot] == nullptr) continue;
    int done = 0;
    int size = 0;
    if (Failed("test of a send", net->Test(requests[slot], &done, &size), failure)) return false;
    if (done == 0) continue;
    requests[slot] = nullptr;
    complete_[slot] = true;
    EndStep(step);
    moved = true;
  }
  while (done_ < posted_ && complete_[done_ % kSlots]) complete_[done_++ % kSlots] = false;
  if (Finished()) EndOperation();
  return moved;
}

void ReceiveEnd::Begin(std::uint64_t steps, std::uint64_t steps_together, void* collective) {
  total = steps;
  group = steps_together;
  begun_ = posted_ = came_ = done_ = consumed_ = 0;
  BeginOperation(collective, false);
}

bool ReceiveEnd::PostGroup(Net* net, RankTale* tale, CallFailure* failure) {
  const std::uint64_t end = GroupEnd(posted_);
  if (end - consumed_ > kSlots) return false;
  std::array<void*, Net::kReceivesMax> buffers{};
  std::array<std::size_t, Net::kReceivesMax> capacities{};
  std::array<int, Net::kReceivesMax> tags{};
  std::array<void*, Net::kReceivesMax> memories{};
  std::array<void*, Net::kReceivesMax> phandles{};
  std::size_t count = 0;
  for (std::uint64_t step = posted_; step < end; ++step, ++count) {
    buffers[count] = Slot(step);
    capacities[count] = slot_bytes;
    tags[count] = group > 1 ? static_cast<int>(step % group) : peer;
    memories[count] = memory;
    phandles[count] = &transfers[step % kSlots];
  }
  for (; begun_ < end; ++begun_) BeginStep(begun_, abi::kStateReceiveWaitsForNetwork);
  // A single receive may say that it sees its data by itself; a valid request must come all the same.
  void* const optional = reinterpret_cast<void*>(abi::kOptionalReceive);
  void* request = count == 1 && posted_ % 2 == 1 ? optional : nullptr;
  const abi::Result result = net->Irecv(comm, static_cast<int>(count), buffers.data(), capacities.data(), tags.data(),
                                        memories.data(), phandles.data(), &request);
  if (Failed("irecv", result, failure)) return false;
  if (request == optional)
    Failed("irecv, which left the mark of an optional receive,", abi::Result::kInternal, failure);
  if (request == nullptr) ++tale->receive_nulls;
  if (request == nullptr || request == optional) return false;
  requests[posted_ % kSlots] = request;
  posted_ = end;
  ++tale->receives;
  return true;
}

bool ReceiveEnd::Progress(Net* net, RankTale* tale, CallFailure* failure) {
  bool moved = false;
  while (posted_ < total && PostGroup(net, tale, failure)) moved = true;
  while (failure->call == nullptr && came_ < posted_) {
    int done = 0;
    std::array<int, Net::kReceivesMax> got{};
    if (Failed("test of a receive", net->Test(requests[came_ % kSlots], &done, got.data()), failure)) return false;
    if (done == 0) break;
    const std::uint64_t begin = came_;
    const std::uint64_t end = GroupEnd(came_);
    requests[begin % kSlots] = nullptr;
    for (std::size_t i = 0; came_ < end; ++i, ++came_) {
      sizes[came_ % kSlots] = static_cast<std::size_t>(got[i]);
      EndStep(came_);
    }
    if (flushes && !BeginFlush(net, begin, tale, failure)) return false;
    moved = true;
  }
  return ShowToKernel(net, failure) || moved;
}

/// Of what came from step `begin` on; not of nothing, as NCCL has it.
bool ReceiveEnd::BeginFlush(Net* net, std::uint64_t begin, RankTale* tale, CallFailure* failure) {
  std::array<void*, Net::kReceivesMax> buffers{};
  std::array<int, Net::kReceivesMax> came{};
  std::array<void*, Net::kReceivesMax> memories{};
  int count = 0;
  std::size_t bytes = 0;
  for (std::uint64_t step = begin; step < came_; ++step, ++count) {
    const auto at = static_cast<std::size_t>(count);
    buffers[at] = Slot(step);
    came[at] = static_cast<int>(sizes[step % kSlots]);
    memories[at] = memory;
    bytes += sizes[step % kSlots];
  }
  if (bytes == 0) return true;
  void* request = this;  // Stale on entry.
  const abi::Result result = net->Iflush(comm, count, buffers.data(), came.data(), memories.data(), &request);
  if (Failed("iflush", result, failure)) return false;
  requests[begin % kSlots] = request;
  ++tale->flushes;
  return true;
}

/// What came, and is flushed where that is wanted. True if there was something.
bool ReceiveEnd::ShowToKernel(Net* net, CallFailure* failure) {
  const std::uint64_t before = done_;
  while (failure->call == nullptr && done_ < came_) {
    void*& flush = requests[done_ % kSlots];
    int done = 1;
    if (flush != nullptr && Failed("test of a flush", net->Test(flush, &done, nullptr), failure)) return false;
    if (done == 0) break;
    flush = nullptr;
    done_ = GroupEnd(done_);
    if (done_ == total) EndOperation();
  }
  return done_ > before;
}

}  // namespace weir::tools::emulate
