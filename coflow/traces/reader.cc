#include "coflow/traces/reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "coflow/traces/flow_list_readers.h"
#include "coflow/traces/json_lines.h"
#include "coflow/traces/terra.h"

namespace weir::traces {
namespace {

/// A regular file that exists: as given, else inside the trace directory.
std::string Resolve(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return path;
  }
  const std::filesystem::path beside = std::filesystem::path(TraceDirectory()) / path;
  return std::filesystem::exists(beside, error) ? beside.string() : path;
}

std::string FirstLines(std::istream* in) {
  constexpr std::size_t kLook = 65'536;
  std::string text(kLook, '\0');
  in->read(text.data(), static_cast<std::streamsize>(kLook));
  text.resize(static_cast<std::size_t>(in->gcount()));
  in->clear();
  in->seekg(0);
  return text;
}

std::size_t FieldsOfLine(std::string_view text) {
  std::size_t fields = 0;
  bool blank = true;
  for (const char c : text.substr(0, text.find('\n'))) {
    const bool now_blank = c == ' ' || c == '\t' || c == '\r';
    fields += blank && !now_blank ? 1U : 0U;
    blank = now_blank;
  }
  return fields;
}

}  // namespace

std::string_view FormatName(Format format) {
  switch (format) {
    case Format::kFacebook:
      return "facebook";
    case Format::kSincronia:
      return "sincronia";
    case Format::kTerra:
      return "terra";
    case Format::kWeir:
      return "weir";
  }
  return "?";
}

Result<Format> FormatFromName(std::string_view name) {
  for (const Format format : {Format::kFacebook, Format::kSincronia, Format::kTerra, Format::kWeir}) {
    if (FormatName(format) == name) {
      return format;
    }
  }
  return Error(StatusCode::kInvalidArgument,
               fmt::format("trace format \"{}\" is not known; allowed: facebook, sincronia, terra, weir", name));
}

Result<std::unique_ptr<Reader>> OpenReader(std::unique_ptr<std::istream> in, std::string origin, Format format) {
  switch (format) {
    case Format::kFacebook:
      return OpenFacebook(std::move(in), std::move(origin));
    case Format::kSincronia:
      return OpenSincronia(std::move(in), std::move(origin));
    case Format::kTerra:
      return OpenTerra(std::move(in), std::move(origin));
    case Format::kWeir:
      return OpenJsonLines(std::move(in), std::move(origin));
  }
  return Error(StatusCode::kInternal, "unknown trace format");
}

Result<Format> DetectFormat(std::istream* in, const std::string& origin) {
  const std::string text = FirstLines(in);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    return Error(StatusCode::kInvalidArgument, origin + ": the file is empty, not a trace");
  }
  if (text[first] == '{') {
    return Format::kWeir;
  }
  if (text[first] == '#') {
    return Format::kTerra;
  }
  if (text[first] < '0' || text[first] > '9') {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}:1: not a trace: a trace starts with \"ports coflows\" (two numbers), \"stages job "
                             "arrival\" (three) or a JSON object",
                             origin));
  }
  if (FieldsOfLine(std::string_view(text).substr(first)) == 3) {
    return Format::kTerra;
  }
  const std::size_t second_line = text.find('\n', first);
  const std::size_t end = second_line == std::string::npos ? text.size() : text.find('\n', second_line + 1);
  const std::size_t colon = text.find(':', first);
  return colon != std::string::npos && colon < end ? Format::kFacebook : Format::kSincronia;
}

std::string TraceDirectory() {
  const char* directory = std::getenv("WEIR_TRACES");
  return directory != nullptr && *directory != '\0' ? directory : "../shared/traces";
}

Result<Trace> Load(const std::string& path) {
  const std::string resolved = Resolve(path);
  std::error_code error;
  if (std::filesystem::is_directory(resolved, error)) {
    return Error(StatusCode::kInvalidArgument, resolved + ": is a directory, not a trace file");
  }
  auto in = std::make_unique<std::ifstream>(resolved, std::ios::binary);
  if (!in->is_open()) {
    const char* const reason = std::strerror(errno);
    return Error(StatusCode::kNotFound, fmt::format("cannot open trace {}: {} (also looked in {}); name a file, or set "
                                                    "WEIR_TRACES to the directory of the traces",
                                                    path, reason, TraceDirectory()));
  }
  return LoadStream(std::move(in), resolved);
}

Result<Trace> LoadStream(std::unique_ptr<std::istream> in, const std::string& origin) {
  const auto format = DetectFormat(in.get(), origin);
  if (!format) {
    return tl::unexpected(format.error());
  }
  auto reader = OpenReader(std::move(in), origin, *format);
  if (!reader) {
    return tl::unexpected(reader.error());
  }
  Trace trace;
  trace.name = origin;
  trace.ports = (*reader)->ports();
  TraceCoflow coflow;
  std::vector<std::size_t> lines;
  while (true) {
    const auto more = (*reader)->Next(&coflow);
    if (!more) {
      return tl::unexpected(more.error());
    }
    if (!*more) {
      break;
    }
    coflow.flows.shrink_to_fit();
    trace.coflows.push_back(std::move(coflow));
    lines.push_back((*reader)->line());
  }
  if (Status status = Finish(&trace, origin, lines); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return trace;
}

}  // namespace weir::traces
