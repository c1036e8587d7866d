#include "coflow/traces/line_cursor.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "coflow/traces/trace.h"

namespace weir::traces {
namespace {

constexpr std::string_view kBlank = " \t";

/// Text from a file is shown shortened and without control characters.
std::string Shown(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto u = static_cast<unsigned char>(c);
    out += (u < 0x20 || u >= 0x7f) ? fmt::format("\\x{:02x}", u) : std::string(1, c);
  }
  return text.size() > kShown ? out + "…" : out;
}

}  // namespace

bool LineCursor::NextLine() {
  while (std::getline(*in_, line_)) {
    ++line_number_;
    unterminated_ = in_->eof();
    at_ = 0;
    field_number_ = 0;
    if (line_.size() > kLineBytesMax) {
      too_long_ = true;
      return false;
    }
    if (!line_.empty() && line_.back() == '\r') {
      line_.pop_back();
    }
    if (line_.find_first_not_of(kBlank) != std::string::npos) {
      return true;
    }
  }
  return false;
}

bool LineCursor::AtEnd() {
  at_ = std::min(line_.find_first_not_of(kBlank, at_), line_.size());
  return at_ == line_.size();
}

std::string_view LineCursor::Field() {
  if (AtEnd()) {
    ++field_number_;
    return {};
  }
  const std::size_t end = std::min(line_.find_first_of(kBlank, at_), line_.size());
  const std::string_view field = std::string_view(line_).substr(at_, end - at_);
  at_ = end;
  ++field_number_;
  return field;
}

Result<std::uint64_t> LineCursor::Integer(std::string_view what, std::uint64_t low, std::uint64_t high) {
  return ParseInteger(Field(), what, low, high);
}

Result<std::uint64_t> LineCursor::ParseInteger(std::string_view text, std::string_view what, std::uint64_t low,
                                               std::uint64_t high) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return tl::unexpected(ComplainField(what, text, fmt::format("a whole number from {} to {}", low, high)));
  }
  return value;
}

Result<double> LineCursor::ParsePositive(std::string_view text, std::string_view what, double high) const {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0 ||
      value > high) {
    return tl::unexpected(ComplainField(what, text, fmt::format("a number above 0 and at most {}", high)));
  }
  return value;
}

Status LineCursor::Complain(std::string_view what_is_wrong) const {
  return Status(StatusCode::kInvalidArgument, fmt::format("{}:{}: {}", origin_, line_number_, what_is_wrong));
}

Status LineCursor::ComplainField(std::string_view what, std::string_view found, std::string_view allowed) const {
  const std::string shown = found.empty() ? "the end of the line" : fmt::format("\"{}\"", Shown(found));
  return Complain(fmt::format("field {} ({}): found {}, allowed: {}", field_number_, what, shown, allowed));
}

}  // namespace weir::traces
