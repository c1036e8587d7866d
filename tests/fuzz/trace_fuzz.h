#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "coflow/check.h"
#include "coflow/traces/reader.h"

namespace weir::traces {

/// One format's reader: every coflow read is within the limits, every refusal names the input. What was read is written
/// as JSON lines and read back the same.
inline int FuzzTrace(Format format, const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto reader = OpenReader(std::make_unique<std::istringstream>(text), "input", format);
  if (!reader) {
    WEIR_CHECK(reader.error().message().starts_with("input:"));
    return 0;
  }
  Trace trace;
  trace.ports = (*reader)->ports();
  WEIR_CHECK(trace.ports >= 1 && trace.ports <= kPortsMax);
  TraceCoflow coflow;
  while (true) {
    const auto more = (*reader)->Next(&coflow);
    if (!more) {
      WEIR_CHECK(more.error().message().starts_with("input:"));
      return 0;
    }
    if (!*more) {
      break;
    }
    WEIR_CHECK(!coflow.flows.empty() && coflow.flows.size() <= kFlowsPerCoflowMax);
    for (const TraceFlow& flow : coflow.flows) {
      WEIR_CHECK(flow.source < trace.ports && flow.destination < trace.ports);
      WEIR_CHECK(flow.bytes >= 1 && flow.bytes <= kFlowBytesMax);
    }
    trace.coflows.push_back(coflow);
  }
  if (!Finish(&trace, "input").ok()) {
    return 0;
  }
  auto written = std::make_unique<std::stringstream>();
  WEIR_CHECK(Write(trace, Format::kWeir, written.get()).ok());
  const auto again = LoadStream(std::move(written), "again");
  WEIR_CHECK(again && again->ports == trace.ports && again->coflows == trace.coflows);
  return 0;
}

}  // namespace weir::traces
