#include <fmt/format.h>

#include <map>
#include <ostream>

#include "coflow/traces/flow_list_readers.h"
#include "coflow/traces/json_lines.h"
#include "coflow/traces/reader.h"

namespace weir::traces {
namespace {

std::string Megabytes(Bytes bytes) {
  const double mb = static_cast<double>(bytes) / static_cast<double>(kMegabyte);
  return bytes % kMegabyte == 0 ? fmt::format("{:.1f}", mb) : fmt::format("{}", mb);
}

Status RefuseWhatListsLack(const TraceCoflow& coflow, Format format) {
  if (!coflow.after.empty() || !coflow.size_known || coflow.deadline != 0 || coflow.weight != 1.0) {
    return Status(
        StatusCode::kUnsupported,
        fmt::format(
            "coflow {} has dependencies, a deadline, a weight or an unknown size, which the {} format cannot hold; "
            "write format weir",
            coflow.id, FormatName(format)));
  }
  return Status::Ok();
}

/// The reader splits a reducer's bytes evenly, so only coflows that are such a split come back as they were.
Status WriteFacebookCoflow(const TraceCoflow& coflow, std::ostream* out) {
  std::map<std::uint32_t, Bytes> reducers;
  std::map<std::uint32_t, std::size_t> flows_of;
  std::vector<std::uint32_t> mappers;
  for (const TraceFlow& flow : coflow.flows) {
    reducers[flow.destination] += flow.bytes;
    ++flows_of[flow.destination];
    if (mappers.size() < coflow.mappers && std::find(mappers.begin(), mappers.end(), flow.source) == mappers.end()) {
      mappers.push_back(flow.source);
    }
  }
  for (const TraceFlow& flow : coflow.flows) {
    const Bytes share = reducers[flow.destination] / mappers.size();
    if (flows_of[flow.destination] != mappers.size() || flow.bytes < share || flow.bytes > share + 1) {
      return Status(
          StatusCode::kUnsupported,
          fmt::format("coflow {} is not an even split over all its mappers, which is all the facebook format can hold; "
                      "write format weir or sincronia",
                      coflow.id));
    }
  }
  *out << fmt::format("{} {} {} {} {}", coflow.id, coflow.arrival / kMillisecond, mappers.size(),
                      fmt::join(mappers, " "), reducers.size());
  for (const auto& [port, bytes] : reducers) {
    *out << ' ' << port << ':' << Megabytes(bytes);
  }
  *out << '\n';
  return Status::Ok();
}

void WriteSincroniaCoflow(const TraceCoflow& coflow, std::ostream* out) {
  *out << fmt::format("{} {} {} {} {}", coflow.id, coflow.arrival / kMillisecond, coflow.flows.size(), coflow.mappers,
                      coflow.reducers);
  for (const TraceFlow& flow : coflow.flows) {
    const double mb = static_cast<double>(flow.bytes) / static_cast<double>(kMegabyte);
    *out << fmt::format(" {} {} {}", flow.source, flow.destination, mb);
  }
  *out << '\n';
}

}  // namespace

Status Write(const Trace& trace, Format format, std::ostream* out) {
  if (format == Format::kWeir) {
    WriteJsonLines(trace, out);
    return Status::Ok();
  }
  if (format == Format::kTerra) {
    return Status(StatusCode::kUnsupported, "the terra format is for reading; write format weir");
  }
  for (const TraceCoflow& coflow : trace.coflows) {
    if (Status status = RefuseWhatListsLack(coflow, format); !status.ok()) {
      return status;
    }
  }
  *out << trace.ports << ' ' << trace.coflows.size() << '\n';
  for (const TraceCoflow& coflow : trace.coflows) {
    if (format == Format::kSincronia) {
      WriteSincroniaCoflow(coflow, out);
    } else if (Status status = WriteFacebookCoflow(coflow, out); !status.ok()) {
      return status;
    }
  }
  return Status::Ok();
}

}  // namespace weir::traces
