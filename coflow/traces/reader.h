#pragma once

#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "coflow/status.h"
#include "coflow/traces/trace.h"

namespace weir::traces {

enum class Format {
  kFacebook,   ///< coflow-benchmark: mappers, reducers and megabytes per reducer.
  kSincronia,  ///< Explicit flow lists in megabytes.
  kTerra,      ///< Jobs of stages at sites; reading only.
  kWeir,       ///< JSON lines, docs/trace-format.md.
};

/// "facebook", "sincronia", "terra", "weir".
std::string_view FormatName(Format format);
Result<Format> FormatFromName(std::string_view name);

/// A trace read one coflow at a time: memory is bounded by the largest coflow, not by the file.
/// Not thread safe. Owns its stream.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::uint32_t ports() const = 0;
  /// Fills `coflow` (its memory is reused). False at the end of a well-formed trace.
  virtual Result<bool> Next(TraceCoflow* coflow) = 0;
  /// The line on which the coflow that Next() gave last stands; 0 where a coflow has no line of its own.
  virtual std::size_t line() const = 0;
};

/// Opens a trace and reads its header. `origin` is the file name for messages.
Result<std::unique_ptr<Reader>> OpenReader(std::unique_ptr<std::istream> in, std::string origin, Format format);

/// Tells the formats apart by the first lines; the stream is left where it was.
Result<Format> DetectFormat(std::istream* in, const std::string& origin);

/// Reads a whole trace; `path` may name a file of the directory in WEIR_TRACES as well.
Result<Trace> Load(const std::string& path);
Result<Trace> LoadStream(std::unique_ptr<std::istream> in, const std::string& origin);

/// Where a trace named without its directory is looked for: WEIR_TRACES, else `../shared/traces` seen from here.
std::string TraceDirectory();

/// Writes `trace` in `format`, any but terra. Facebook's cannot express an uneven split over the mappers, dependencies
/// or unknown sizes: such a trace is refused with the coflow's id.
Status Write(const Trace& trace, Format format, std::ostream* out);

}  // namespace weir::traces
