#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>

#include "coflow/status.h"
#include "coflow/unique_fd.h"

namespace weir::tools {

/// A cable between two network namespaces of our own, which loses frames or all of them when it is told to: neither
/// end's kernel is told, as with a switch that dies somewhere in between. Each end is a TAP device of the same name; a
/// thread carries the frames from one to the other.
///
/// Making one moves the calling process into one of the namespaces, for good; where the process may not do that as it
/// is, into a user namespace as well. So it is for programs of a single thread that do nothing else. What it made goes
/// with the processes in it.
/// Owned by whoever made it; Make, the destructor and the setters on one thread. Carries frames of up to kMtuMax bytes.
class TestLink {
 public:
  static constexpr const char* kDevice = "weir0";
  static constexpr std::uint32_t kMtuMax = 9000;

  /// Error kUnsupported with what was refused and what to do; the process is then where it was, or in namespaces
  /// without a link, so it should end soon.
  static Result<std::unique_ptr<TestLink>> Make(std::uint32_t mtu, std::uint64_t seed);
  ~TestLink();
  TestLink(const TestLink&) = delete;
  TestLink& operator=(const TestLink&) = delete;

  /// Addresses on the link; ours, and that of the other namespace.
  static constexpr const char* kOurs = "10.77.1.1";
  static constexpr const char* kTheirs = "10.77.1.2";
  /// A descriptor of the other namespace, for setns().
  int other() const { return other_.get(); }

  /// Of each frame, from the next one on: 0 .. 1; 1 is a cut.
  void Lose(double probability) noexcept { lose_ = probability; }
  /// Frames that came to an end, and were not passed on.
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  explicit TestLink(std::uint64_t seed) : random_(seed) {}
  void Carry();
  void Pass(int from, int to);

  UniqueFd other_;
  UniqueFd ends_[2];
  UniqueFd stop_;
  std::mt19937_64 random_;  ///< Of the thread.
  std::atomic<double> lose_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::thread thread_;
};

}  // namespace weir::tools
