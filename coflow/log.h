#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

/// One line an event, on standard error: time, level, event name, key=value fields. At most one line per state change,
/// never one per packet. Any thread. Not for processes we are loaded into.
namespace weir::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };

/// A value turned into text; strings with spaces or quotes are quoted when printed.
class Field {
 public:
  Field(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  Field(std::string_view key, const char* value) : key_(key), value_(value) {}
  Field(std::string_view key, const std::string& value) : key_(key), value_(value) {}
  Field(std::string_view key, bool value) : key_(key), value_(value ? "true" : "false") {}
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) Field(std::string_view key, T value)
      : key_(key), value_(std::to_string(value)) {}

  std::string_view key() const { return key_; }
  const std::string& value() const { return value_; }

 private:
  std::string_view key_;
  std::string value_;
};

void SetLevel(Level level);
/// "debug", "info", "warn", "error" or "off"; false if it is none of them.
bool SetLevel(std::string_view name);

/// "event key=value key="two words"", as it is printed after time and level.
std::string FormatLine(std::string_view event, std::initializer_list<Field> fields);

void Debug(std::string_view event, std::initializer_list<Field> fields = {});
void Info(std::string_view event, std::initializer_list<Field> fields = {});
void Warn(std::string_view event, std::initializer_list<Field> fields = {});
void Error(std::string_view event, std::initializer_list<Field> fields = {});

}  // namespace weir::log
