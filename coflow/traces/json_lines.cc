#include "coflow/traces/json_lines.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>

#include "coflow/traces/line_cursor.h"

namespace weir::traces {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr std::string_view kCoflowKeys = "id, arrival_ns, flows, job, deadline_ns, weight, size_known, after";

class JsonLinesReader final : public Reader {
 public:
  JsonLinesReader(std::unique_ptr<std::istream> in, std::string origin)
      : stream_(std::move(in)), cursor_(stream_.get(), std::move(origin)) {}

  std::uint32_t ports() const override { return ports_; }
  std::size_t line() const override { return cursor_.line_number(); }

  Status ReadHeader() {
    if (!cursor_.NextLine()) {
      return cursor_.Complain("the file is empty; expected a header like {\"weir_trace\":1,\"ports\":150}");
    }
    const auto object = ParseLine();
    if (!object) {
      return object.error();
    }
    const auto version = Unsigned((*object)["weir_trace"], "weir_trace", 1, 1);
    if (!version) {
      return version.error();
    }
    const auto ports = Unsigned((*object)["ports"], "ports", 1, kPortsMax);
    if (!ports) {
      return ports.error();
    }
    ports_ = static_cast<std::uint32_t>(*ports);
    return Status::Ok();
  }

  Result<bool> Next(TraceCoflow* coflow) override {
    if (!cursor_.NextLine()) {
      if (cursor_.TooLong()) {
        return tl::unexpected(cursor_.Complain(fmt::format("the line is longer than {} bytes", kLineBytesMax)));
      }
      return false;
    }
    const auto object = ParseLine();
    if (!object) {
      return tl::unexpected(object.error());
    }
    *coflow = TraceCoflow();
    if (Status status = ReadCoflow(*object, coflow); !status.ok()) {
      return tl::unexpected(std::move(status));
    }
    CountEnds(coflow);
    return true;
  }

 private:
  Result<element> ParseLine() {
    element root;
    const auto error = parser_.parse(cursor_.line().data(), cursor_.line().size()).get(root);
    if (error != simdjson::SUCCESS) {
      const std::string_view cut =
          cursor_.AtUnterminatedLine() ? "; the last line has no newline, the file may be cut short" : "";
      return tl::unexpected(
          cursor_.Complain(fmt::format("not a JSON object: {}{}", simdjson::error_message(error), cut)));
    }
    if (root.type() != element_type::OBJECT) {
      return tl::unexpected(cursor_.Complain("found JSON that is not an object, allowed: one {…} a line"));
    }
    return root;
  }

  Status Wrong(std::string_view key, std::string_view allowed) const {
    return cursor_.Complain(fmt::format("key \"{}\": missing or wrong, allowed: {}", key, allowed));
  }

  Result<std::uint64_t> Unsigned(simdjson::simdjson_result<element> value, std::string_view key, std::uint64_t low,
                                 std::uint64_t high) const {
    std::uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number < low || number > high) {
      return tl::unexpected(Wrong(key, fmt::format("a whole number from {} to {}", low, high)));
    }
    return number;
  }

  Status ReadCoflow(const element& object, TraceCoflow* coflow) {
    bool has_id = false;
    bool has_flows = false;
    for (const auto field : object.get_object()) {
      has_id |= field.key == "id";
      has_flows |= field.key == "flows";
      if (Status status = ReadKey(field.key, field.value, coflow); !status.ok()) {
        return status;
      }
    }
    if (!has_id) {
      return Wrong("id", "a whole number, unique in the file");
    }
    if (!has_flows || coflow->flows.empty()) {
      return cursor_.Complain(
          fmt::format("coflow {} has no flows, allowed: at least one [source, destination, bytes]", coflow->id));
    }
    return Status::Ok();
  }

  Status ReadKey(std::string_view key, const element& value, TraceCoflow* coflow) {
    constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
    constexpr auto kLate = static_cast<std::uint64_t>(kTimeMax);
    if (key == "flows") {
      return ReadFlows(value, coflow);
    }
    if (key == "after") {
      return ReadAfter(value, coflow);
    }
    if (key == "weight") {
      double weight = 0;
      if (value.get(weight) != simdjson::SUCCESS || !std::isfinite(weight) || weight <= 0) {
        return Wrong(key, "a number above 0");
      }
      coflow->weight = weight;
      return Status::Ok();
    }
    if (key == "size_known") {
      return value.get<bool>().get(coflow->size_known) == simdjson::SUCCESS ? Status::Ok()
                                                                            : Wrong(key, "true or false");
    }
    const bool is_time = key == "arrival_ns" || key == "deadline_ns";
    if (!is_time && key != "id" && key != "job") {
      return cursor_.Complain(fmt::format("key \"{}\" is not known, allowed: {}", key, kCoflowKeys));
    }
    const auto number = Unsigned(element(value), key, 0, is_time ? kLate : kAny);
    if (!number) {
      return number.error();
    }
    if (is_time) {
      (key == "arrival_ns" ? coflow->arrival : coflow->deadline) = static_cast<Nanoseconds>(*number);
    } else {
      (key == "id" ? coflow->id : coflow->job) = *number;
    }
    return Status::Ok();
  }

  Status ReadFlows(const element& value, TraceCoflow* coflow) {
    simdjson::dom::array flows;
    if (value.get(flows) != simdjson::SUCCESS || flows.size() > kFlowsPerCoflowMax) {
      return Wrong("flows", fmt::format("a list of at most {} [source, destination, bytes]", kFlowsPerCoflowMax));
    }
    coflow->flows.reserve(flows.size());
    for (const element item : flows) {
      simdjson::dom::array triple;
      if (item.get(triple) != simdjson::SUCCESS || triple.size() != 3) {
        return Wrong("flows", "a list of [source, destination, bytes]");
      }
      const auto source = Unsigned(triple.at(0), "flows: source port", 0, ports_ - 1);
      const auto destination = Unsigned(triple.at(1), "flows: destination port", 0, ports_ - 1);
      const auto bytes = Unsigned(triple.at(2), "flows: bytes", 1, kFlowBytesMax);
      for (const auto* part : {&source, &destination, &bytes}) {
        if (!*part) {
          return part->error();
        }
      }
      coflow->flows.push_back({static_cast<std::uint32_t>(*source), static_cast<std::uint32_t>(*destination), *bytes});
    }
    return Status::Ok();
  }

  Status ReadAfter(const element& value, TraceCoflow* coflow) {
    simdjson::dom::array ids;
    if (value.get(ids) != simdjson::SUCCESS) {
      return Wrong("after", "a list of coflow ids");
    }
    for (const element item : ids) {
      std::uint64_t id = 0;
      if (item.get(id) != simdjson::SUCCESS) {
        return Wrong("after", "a list of coflow ids");
      }
      coflow->after.push_back(id);
    }
    return Status::Ok();
  }

  std::unique_ptr<std::istream> stream_;
  LineCursor cursor_;
  simdjson::dom::parser parser_;
  std::uint32_t ports_ = 0;
};

}  // namespace

Result<std::unique_ptr<Reader>> OpenJsonLines(std::unique_ptr<std::istream> in, std::string origin) {
  auto reader = std::make_unique<JsonLinesReader>(std::move(in), std::move(origin));
  if (Status status = reader->ReadHeader(); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return std::unique_ptr<Reader>(std::move(reader));
}

void WriteJsonLines(const Trace& trace, std::ostream* out) {
  *out << fmt::format("{{\"weir_trace\":1,\"ports\":{}}}\n", trace.ports);
  for (const TraceCoflow& coflow : trace.coflows) {
    std::string line = fmt::format("{{\"id\":{},\"arrival_ns\":{}", coflow.id, coflow.arrival);
    if (coflow.job != 0) {
      line += fmt::format(",\"job\":{}", coflow.job);
    }
    if (coflow.deadline != 0) {
      line += fmt::format(",\"deadline_ns\":{}", coflow.deadline);
    }
    if (coflow.weight != 1.0) {
      line += fmt::format(",\"weight\":{}", coflow.weight);
    }
    if (!coflow.size_known) {
      line += ",\"size_known\":false";
    }
    if (!coflow.after.empty()) {
      line += fmt::format(",\"after\":[{}]", fmt::join(coflow.after, ","));
    }
    line += ",\"flows\":[";
    for (std::size_t i = 0; i < coflow.flows.size(); ++i) {
      const TraceFlow& flow = coflow.flows[i];
      line += fmt::format("{}[{},{},{}]", i == 0 ? "" : ",", flow.source, flow.destination, flow.bytes);
    }
    *out << line << "]}\n";
  }
}

}  // namespace weir::traces
