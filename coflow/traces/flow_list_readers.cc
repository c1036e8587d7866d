#include "coflow/traces/flow_list_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "coflow/traces/line_cursor.h"

namespace weir::traces {
namespace {

constexpr std::uint64_t kMillisecondsMax = static_cast<std::uint64_t>(kTimeMax / kMillisecond);

/// What the two formats share: a header `ports coflows`, one coflow a line, and the checks at the end of a line and of
/// a file.
class LineReader : public Reader {
 public:
  LineReader(std::unique_ptr<std::istream> in, std::string origin)
      : stream_(std::move(in)), cursor_(stream_.get(), origin), origin_(std::move(origin)) {}

  std::uint32_t ports() const override { return ports_; }
  std::size_t line() const override { return cursor_.line_number(); }

  Status ReadHeader() {
    if (!cursor_.NextLine()) {
      return Status(StatusCode::kInvalidArgument,
                    origin_ + ": the file is empty; expected a first line \"ports coflows\"");
    }
    const auto ports = cursor_.Integer("ports", 1, kPortsMax);
    if (!ports) {
      return ports.error();
    }
    const auto coflows = cursor_.Integer("coflows", 0, std::numeric_limits<std::uint32_t>::max());
    if (!coflows) {
      return coflows.error();
    }
    ports_ = static_cast<std::uint32_t>(*ports);
    expected_ = *coflows;
    return cursor_.AtEnd() ? Status::Ok() : cursor_.Complain("the first line has more than \"ports coflows\"");
  }

  Result<bool> Next(TraceCoflow* coflow) override {
    if (!cursor_.NextLine()) {
      if (cursor_.TooLong()) {
        return tl::unexpected(cursor_.Complain(fmt::format("the line is longer than {} bytes", kLineBytesMax)));
      }
      if (read_ < expected_) {
        return tl::unexpected(cursor_.Complain(fmt::format(
            "the file ends after {} coflows, its first line promises {}; it is cut short", read_, expected_)));
      }
      return false;
    }
    if (read_ == expected_) {
      return tl::unexpected(
          cursor_.Complain(fmt::format("more coflows than the {} the first line promises", expected_)));
    }
    *coflow = TraceCoflow();
    if (Status status = ReadCoflow(coflow); !status.ok()) {
      return tl::unexpected(std::move(status));
    }
    if (!cursor_.AtEnd()) {
      return tl::unexpected(cursor_.ComplainField("after the last flow", cursor_.Field(), "the end of the line"));
    }
    ++read_;
    CountEnds(coflow);
    return true;
  }

 protected:
  virtual Status ReadCoflow(TraceCoflow* coflow) = 0;

  Status ReadIdAndArrival(TraceCoflow* coflow) {
    const auto id = cursor_.Integer("coflow id", 0, std::numeric_limits<std::uint64_t>::max());
    if (!id) {
      return id.error();
    }
    const auto arrival = cursor_.Integer("arrival in ms", 0, kMillisecondsMax);
    if (!arrival) {
      return arrival.error();
    }
    coflow->id = *id;
    coflow->arrival = static_cast<Nanoseconds>(*arrival) * kMillisecond;
    return Status::Ok();
  }

  Result<std::uint32_t> Port(std::string_view what) { return PortIn(cursor_.Field(), what); }
  Result<std::uint32_t> PortIn(std::string_view text, std::string_view what) {
    return cursor_.ParseInteger(text, what, 0, ports_ - 1).map([](std::uint64_t p) {
      return static_cast<std::uint32_t>(p);
    });
  }
  Result<Bytes> Megabytes(std::string_view text) {
    const auto mb = cursor_.ParsePositive(text, "megabytes", static_cast<double>(kFlowBytesMax / kMegabyte));
    if (!mb) {
      return tl::unexpected(mb.error());
    }
    return std::max<Bytes>(1, static_cast<Bytes>(std::llround(*mb * static_cast<double>(kMegabyte))));
  }

  std::unique_ptr<std::istream> stream_;
  LineCursor cursor_;
  std::string origin_;
  std::uint32_t ports_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t read_ = 0;
};

class FacebookReader final : public LineReader {
 public:
  using LineReader::LineReader;

 private:
  Status ReadCoflow(TraceCoflow* coflow) override {
    if (Status status = ReadIdAndArrival(coflow); !status.ok()) {
      return status;
    }
    const auto mappers = cursor_.Integer("mappers", 1, kFlowsPerCoflowMax);
    if (!mappers) {
      return mappers.error();
    }
    sources_.clear();
    for (std::uint64_t i = 0; i < *mappers; ++i) {
      const auto port = Port("mapper port");
      if (!port) {
        return port.error();
      }
      // Several mappers of one rack are one sender: only the reducers' totals are known, so a second entry adds
      // nothing.
      if (std::find(sources_.begin(), sources_.end(), *port) == sources_.end()) {
        sources_.push_back(*port);
      }
    }
    const auto reducers = cursor_.Integer("reducers", 1, kFlowsPerCoflowMax);
    if (!reducers) {
      return reducers.error();
    }
    if (*reducers * sources_.size() > kFlowsPerCoflowMax) {
      return cursor_.Complain(fmt::format("the coflow has more than {} flows", kFlowsPerCoflowMax));
    }
    for (std::uint64_t i = 0; i < *reducers; ++i) {
      if (Status status = ReadReducer(coflow); !status.ok()) {
        return status;
      }
    }
    return Status::Ok();
  }

  Status ReadReducer(TraceCoflow* coflow) {
    const std::string_view field = cursor_.Field();
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos) {
      return cursor_.ComplainField("reducer", field, "port:megabytes, for example 12:48.0");
    }
    const auto port = PortIn(field.substr(0, colon), "reducer port");
    if (!port) {
      return port.error();
    }
    const auto bytes = Megabytes(field.substr(colon + 1));
    if (!bytes) {
      return bytes.error();
    }
    // The trace knows a reducer's total only; it is split evenly, and the odd bytes go to the first mappers.
    const Bytes share = *bytes / sources_.size();
    const Bytes odd = *bytes % sources_.size();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const Bytes size = share + (i < odd ? 1 : 0);
      if (size > 0) {
        coflow->flows.push_back({sources_[i], *port, size});
      }
    }
    return Status::Ok();
  }

  std::vector<std::uint32_t> sources_;
};

class SincroniaReader final : public LineReader {
 public:
  using LineReader::LineReader;

 private:
  Status ReadCoflow(TraceCoflow* coflow) override {
    if (Status status = ReadIdAndArrival(coflow); !status.ok()) {
      return status;
    }
    const auto flows = cursor_.Integer("flows", 1, kFlowsPerCoflowMax);
    if (!flows) {
      return flows.error();
    }
    for (const std::string_view what : {"mappers", "reducers"}) {
      // Counts from before the trace was scaled down to few hosts; the flow list is what holds.
      if (const auto count = cursor_.Integer(what, 1, kFlowsPerCoflowMax); !count) {
        return count.error();
      }
    }
    for (std::uint64_t i = 0; i < *flows; ++i) {
      const auto source = Port("source port");
      if (!source) {
        return source.error();
      }
      const auto destination = Port("destination port");
      if (!destination) {
        return destination.error();
      }
      const auto bytes = Megabytes(cursor_.Field());
      if (!bytes) {
        return bytes.error();
      }
      coflow->flows.push_back({*source, *destination, *bytes});
    }
    return Status::Ok();
  }
};

template <typename T>
Result<std::unique_ptr<Reader>> Open(std::unique_ptr<std::istream> in, std::string origin) {
  auto reader = std::make_unique<T>(std::move(in), std::move(origin));
  if (Status status = reader->ReadHeader(); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace

Result<std::unique_ptr<Reader>> OpenFacebook(std::unique_ptr<std::istream> in, std::string origin) {
  return Open<FacebookReader>(std::move(in), std::move(origin));
}

Result<std::unique_ptr<Reader>> OpenSincronia(std::unique_ptr<std::istream> in, std::string origin) {
  return Open<SincroniaReader>(std::move(in), std::move(origin));
}

}  // namespace weir::traces
