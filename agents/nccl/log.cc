#include "agents/nccl/log.h"

#include <atomic>

namespace weir::nccl {
namespace {

std::atomic<abi::Logger> logger_in_use{nullptr};

void Say(abi::LogLevel level, const char* place, std::string_view text) {
  const abi::Logger logger = logger_in_use.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  logger(level, abi::kLogInit | abi::kLogNet, place, 0, "NET/Weir : %.*s", static_cast<int>(text.size()), text.data());
}

}  // namespace

void SetLogger(abi::Logger logger) {
  if (logger != nullptr) logger_in_use.store(logger, std::memory_order_release);
}

void Warn(std::string_view text) {
  Say(abi::LogLevel::kWarn, "weir", text);
}

void Inform(std::string_view text) {
  Say(abi::LogLevel::kInfo, "weir", text);
}

}  // namespace weir::nccl
