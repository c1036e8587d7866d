#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"

namespace weir::tools {

/// One result for people and for scripts: every command of weir-perf ends in one of these, and it is printed the same
/// way.
struct Sheet {
  struct Column {
    std::string key;      ///< In JSON and CSV: "bits_per_second".
    std::string heading;  ///< In the table and the HTML report: "Gbit/s".
  };
  struct Cell {
    std::string exact;    ///< In JSON and CSV. Of a number: as JSON writes it.
    std::string shown;    ///< For people.
    bool number = false;  ///< Numbers stand to the right, and have no quotes in JSON.
  };
  /// A line of a chart in the HTML report.
  struct Curve {
    std::string name;
    std::vector<double> values;  ///< One for each of Sheet::marks.
  };

  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< Each as long as `columns`.
  std::string notes;                    ///< Under the table, for people.
  // The chart; none where there are no curves.
  std::string axis;                ///< What the marks are: "seconds".
  std::string unit;                ///< What the values are: "Gbit/s".
  std::vector<std::string> marks;  ///< Along the lower axis, evenly spaced.
  std::vector<Curve> curves;
};

/// A number: exact to `digits` behind the point in JSON and CSV, and as `shown` for people.
Sheet::Cell Number(double value, int digits, std::string shown);
Sheet::Cell Text(std::string text);

enum class PerfOutput : std::uint8_t { kTable, kJson, kCsv };

/// Error kInvalidArgument with what is allowed.
Result<PerfOutput> PerfOutputFromName(std::string_view name);

void PrintSheet(const Sheet& sheet, PerfOutput output, std::ostream* out);
/// One file that needs no other: tables and charts. `setting` says what was run.
void PrintHtml(const std::vector<Sheet>& sheets, std::string_view setting, std::ostream* out);

}  // namespace weir::tools
