#include "tools/weir-sim/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

namespace weir::tools {
namespace {

std::mutex unfinished_mutex;
std::string unfinished;  // guarded by unfinished_mutex; the program writes one file at a time

void SetUnfinished(const std::string& path) {
  const std::lock_guard lock(unfinished_mutex);
  unfinished = path;
}

bool WrittenDirectly(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), written_(path_) {
  if (!WrittenDirectly(path_)) {
    std::error_code error;
    // A link stays one: what it points to is replaced.
    const auto target = std::filesystem::weakly_canonical(path_, error);
    path_ = error ? path_ : target.string();
    written_ = fmt::format("{}.{}.tmp", path_, getpid());
    SetUnfinished(written_);
  }
  stream_.open(written_);
}

OutputFile::~OutputFile() {
  if (written_ != path_) {
    std::error_code error;
    std::filesystem::remove(written_, error);
    SetUnfinished("");
  }
}

Status OutputFile::Commit() {
  stream_.close();
  if (!stream_.good()) {
    return Status(StatusCode::kUnavailable, fmt::format("cannot write {}; check the path and the space", path_));
  }
  if (written_ == path_) {
    return Status::Ok();
  }
  std::error_code error;
  std::filesystem::rename(written_, path_, error);
  return error ? Status(StatusCode::kUnavailable, fmt::format("cannot write {}: {}", path_, error.message()))
               : Status::Ok();
}

void RemoveUnfinishedOutput() {
  const std::lock_guard lock(unfinished_mutex);
  if (!unfinished.empty()) {
    unlink(unfinished.c_str());
  }
}

}  // namespace weir::tools
