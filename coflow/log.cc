#include "coflow/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

namespace weir::log {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("weir", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

void AppendValue(std::string& line, const std::string& value) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const bool plain =
      !value.empty() && value.find_first_of(" \"=\\") == std::string::npos && std::ranges::none_of(value, control);
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    line += control(c) ? ' ' : c;  // A peer's text must not move a terminal's cursor.
  }
  line += '"';
}

void Write(Level level, std::string_view event, std::initializer_list<Field> fields) {
  spdlog::logger& logger = Logger();
  if (logger.should_log(ToSpdlog(level))) logger.log(ToSpdlog(level), FormatLine(event, fields));
}

}  // namespace

void SetLevel(Level level) {
  Logger().set_level(ToSpdlog(level));
}

bool SetLevel(std::string_view name) {
  if (name == "debug") {
    SetLevel(Level::kDebug);
  } else if (name == "info") {
    SetLevel(Level::kInfo);
  } else if (name == "warn") {
    SetLevel(Level::kWarn);
  } else if (name == "error") {
    SetLevel(Level::kError);
  } else if (name == "off") {
    SetLevel(Level::kOff);
  } else {
    return false;
  }
  return true;
}

std::string FormatLine(std::string_view event, std::initializer_list<Field> fields) {
  std::string line(event);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key();
    line += '=';
    AppendValue(line, field.value());
  }
  return line;
}

void Debug(std::string_view event, std::initializer_list<Field> fields) {
  Write(Level::kDebug, event, fields);
}
void Info(std::string_view event, std::initializer_list<Field> fields) {
  Write(Level::kInfo, event, fields);
}
void Warn(std::string_view event, std::initializer_list<Field> fields) {
  Write(Level::kWarn, event, fields);
}
void Error(std::string_view event, std::initializer_list<Field> fields) {
  Write(Level::kError, event, fields);
}

}  // namespace weir::log
