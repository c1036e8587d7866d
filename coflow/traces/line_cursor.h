#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "coflow/status.h"

namespace weir::traces {

/// Reads a text stream line by line and a line field by field, and words every complaint the same way:
/// `file:line: field N (what): found "x", allowed: y`. Fields are separated by spaces or tabs; a trailing carriage
/// return is dropped, so files from Windows read the same. Not thread safe; the stream must outlive it.
class LineCursor {
 public:
  LineCursor(std::istream* in, std::string origin) : in_(in), origin_(std::move(origin)) {}

  /// Moves to the next line that is not blank. False at the end of the stream or when a line is longer than
  /// kLineBytesMax.
  bool NextLine();
  /// True if the last line read ended with the stream and not with a newline: the file may be cut short.
  bool AtUnterminatedLine() const { return unterminated_; }
  bool TooLong() const { return too_long_; }

  std::string_view line() const { return line_; }
  std::size_t line_number() const { return line_number_; }
  bool AtEnd();

  /// The next field, empty at the end of the line.
  std::string_view Field();
  /// An unsigned integer in [low, high], written with digits only.
  Result<std::uint64_t> Integer(std::string_view what, std::uint64_t low, std::uint64_t high);
  /// `text` as such an integer; for parts of a field.
  Result<std::uint64_t> ParseInteger(std::string_view text, std::string_view what, std::uint64_t low,
                                     std::uint64_t high) const;
  /// `text` as a finite number above zero and at most `high`.
  Result<double> ParsePositive(std::string_view text, std::string_view what, double high) const;

  /// A complaint about the current line, or about the field read last.
  Status Complain(std::string_view what_is_wrong) const;
  Status ComplainField(std::string_view what, std::string_view found, std::string_view allowed) const;

 private:
  std::istream* in_;
  std::string origin_;
  std::string line_;
  std::size_t line_number_ = 0;
  std::size_t at_ = 0;
  std::size_t field_number_ = 0;
  bool unterminated_ = false;
  bool too_long_ = false;
};

}  // namespace weir::traces
