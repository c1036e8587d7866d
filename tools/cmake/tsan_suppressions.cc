// Of builds with the thread sanitizer only: what it may not report, one reason a line.

extern "C" const char* __tsan_default_suppressions() {
  return
      // DPDK's allocator: its locks are in code that the sanitizer did not compile, so it does not see them.
      "race:malloc_elem_\n"
      "race:rte_intr_instance_dup\n";
}
