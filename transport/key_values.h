#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "coflow/status.h"

namespace weir::transport {

/// Settings written as "key=value,key=value", from a flag or a variable. Every error is kInvalidArgument, and begins
/// with what the text came from. A plain value.
class KeyValues {
 public:
  KeyValues() = default;
  /// `source` is for people: "--options". Error for what has no key, no value, or a key that came before.
  static Result<KeyValues> Parse(std::string_view source, std::string_view text);

  bool empty() const { return values_.empty(); }
  bool Has(const std::string& key) const { return values_.contains(key); }
  /// Empty where there is none.
  std::string Text(const std::string& key) const;
  /// `fallback` where there is none. Error with key, value and range.
  Result<std::uint64_t> Number(const std::string& key, std::uint64_t fallback, std::uint64_t least,
                               std::uint64_t most) const;
  /// Error with the keys that are allowed, when there is another one.
  Status AllowOnly(std::span<const std::string_view> allowed) const;
  /// For errors of those who read a value: "--options: gid: found "x", allowed: ...".
  Status Wrong(const std::string& key, std::string_view found, std::string_view allowed) const;
  const std::string& source() const { return source_; }

 private:
  std::string source_ = "options";
  std::map<std::string, std::string> values_;
};

}  // namespace weir::transport
