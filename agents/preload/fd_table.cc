#include "agents/preload/fd_table.h"

#include <sys/mman.h>

#include <algorithm>

namespace weir::preload {

FdEntry* FdTable::Get(int fd) {
  if (FdEntry* entry = Find(fd)) return entry;
  const auto number = static_cast<unsigned>(fd);
  if (number >= kPages * kPageEntries) return nullptr;
  constexpr std::size_t kBytes = sizeof(FdEntry) * kPageEntries;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* page = static_cast<FdEntry*>(memory);
  FdEntry* expected = nullptr;
  if (!pages_[number / kPageEntries].compare_exchange_strong(expected, page, std::memory_order_acq_rel)) {
    munmap(memory, kBytes);
    page = expected;
  }
  return page + number % kPageEntries;
}

unsigned FdTable::NextRecorded(unsigned from, unsigned last) const {
  last = std::min(last, kPages * kPageEntries - 1);
  while (from <= last) {
    if (pages_[from / kPageEntries].load(std::memory_order_acquire) != nullptr) return from;
    from = (from / kPageEntries + 1) * kPageEntries;
  }
  return last + 1;
}

}  // namespace weir::preload
