#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::transport::rdma {

/// Which ports are used, as NCCL_IB_HCA says it; see RdmaOptions::devices. An empty rule takes every port. Pure.
class DeviceRule {
 public:
  explicit DeviceRule(std::string_view text);
  /// Ports are counted from 1.
  bool Takes(std::string_view device, int port) const;

 private:
  struct Entry {
    std::string name;
    int port = 0;  ///< 0: every one.
  };
  bool exclude_ = false;
  bool whole_ = false;
  std::vector<Entry> entries_;
};

}  // namespace weir::transport::rdma
