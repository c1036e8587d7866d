#include "agents/preload/fd_table.h"

#include <sys/mman.h>

namespace weir::preload {

FdEntry* FdTable::Get(int fd) {
  if (FdEntry* entry = Find(fd)) return entry;
  const auto number = static_cast<unsigned>(fd);
  if (number >= static_cast<unsigned>(kPages * kPageEntries)) return nullptr;
  // Zero-filled memory is a valid array of entries, all kUnknown, but for the registrations' epoll_fd.
  constexpr std::size_t kBytes = sizeof(FdEntry) * kPageEntries;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* page = static_cast<FdEntry*>(memory);
  for (int i = 0; i < kPageEntries; ++i) {
    for (Registration& registration : page[i].registrations) registration.epoll_fd = -1;
  }
  FdEntry* expected = nullptr;
  if (!pages_[number / kPageEntries].compare_exchange_strong(expected, page, std::memory_order_acq_rel)) {
    munmap(memory, kBytes);
    page = expected;
  }
  return page + number % kPageEntries;
}

}  // namespace weir::preload
