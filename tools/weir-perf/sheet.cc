#include "tools/weir-perf/sheet.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>

namespace weir::tools {
namespace {

std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

void PrintTable(const Sheet& sheet, std::ostream* out) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Sheet::Column& column : sheet.columns) lines[0].push_back(column.heading);
  for (const auto& row : sheet.rows) {
    lines.emplace_back();
    for (const Sheet::Cell& cell : row) lines.back().push_back(cell.shown);
  }
  std::vector<std::size_t> widths(sheet.columns.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool right = !sheet.rows.empty() && sheet.rows[0][i].number;
      const std::string fill(widths[i] - line[i].size(), ' ');
      text += (i == 0 ? "" : "  ") + (right ? fill + line[i] : line[i] + fill);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    *out << text << '\n';
  }
  if (!sheet.notes.empty()) *out << sheet.notes << '\n';
}

void PrintJson(const Sheet& sheet, std::ostream* out) {
  *out << '[';
  for (std::size_t r = 0; r < sheet.rows.size(); ++r) {
    *out << (r == 0 ? "\n  {" : ",\n  {");
    for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
      const Sheet::Cell& cell = sheet.rows[r][i];
      fmt::print(*out, "{}{}: {}", i == 0 ? "" : ", ", JsonText(sheet.columns[i].key),
                 cell.number ? cell.exact : JsonText(cell.exact));
    }
    *out << '}';
  }
  *out << "\n]\n";
}

void PrintCsv(const Sheet& sheet, std::ostream* out) {
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) *out << (i == 0 ? "" : ",") << sheet.columns[i].key;
  *out << '\n';
  for (const auto& row : sheet.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) *out << (i == 0 ? "" : ",") << CsvText(row[i].exact);
    *out << '\n';
  }
}

}  // namespace

Sheet::Cell Number(double value, int digits, std::string shown) {
  return {fmt::format("{:.{}f}", value, digits), std::move(shown), true};
}

Sheet::Cell Text(std::string text) {
  return {text, text, false};
}

Result<PerfOutput> PerfOutputFromName(std::string_view name) {
  if (name == "table") return PerfOutput::kTable;
  if (name == "json") return PerfOutput::kJson;
  if (name == "csv") return PerfOutput::kCsv;
  return Error(StatusCode::kInvalidArgument, fmt::format("--output: found \"{}\", allowed: table, json, csv", name));
}

void PrintSheet(const Sheet& sheet, PerfOutput output, std::ostream* out) {
  switch (output) {
    case PerfOutput::kTable:
      return PrintTable(sheet, out);
    case PerfOutput::kJson:
      return PrintJson(sheet, out);
    case PerfOutput::kCsv:
      return PrintCsv(sheet, out);
  }
}

}  // namespace weir::tools
