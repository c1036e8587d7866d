#pragma once

#include <string>

#include "coflow/status.h"

namespace weir::tools {

/// A program of the operator's that makes the link between two ends lose what goes over it: for links that weir-perf
/// cannot make itself, such as the cable between two RDMA devices. It is called with one word, the percentage of frames
/// that the link loses each way from then on: 100 is a silent cut, 0 a link in order.
class LinkProgram {
 public:
  explicit LinkProgram(std::string program) : program_(std::move(program)) {}

  /// Waits until the program has done it, for ten seconds at most. `probability` is 0 .. 1. Error kUnavailable with how
  /// the program ended.
  Status Lose(double probability) const;

 private:
  std::string program_;
};

}  // namespace weir::tools
