#pragma once

#include <fstream>
#include <string>

#include "coflow/status.h"

namespace weir::tools {

/// A file that is there whole or not at all: written beside its place under another name, and renamed by Commit(). What
/// exists and is no regular file (/dev/stdout, a pipe) is written directly. Not thread safe.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  /// Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  bool is_open() const { return stream_.is_open(); }
  /// Unavailable if it could not be written to its end: then the file of that name, if any, is as it was.
  Status Commit();

 private:
  std::string path_;
  std::string written_;  ///< Equal to path_ when written directly.
  std::ofstream stream_;
};

/// Removes the file that is being written, if any. AnyThread.
void RemoveUnfinishedOutput();

}  // namespace weir::tools
