#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

#include "coflow/traces/reader.h"

namespace weir::traces {

/// What a trace named "t" with this text is read as.
inline Result<Trace> Read(const std::string& text) {
  return LoadStream(std::make_unique<std::istringstream>(text), "t");
}

/// The message of a trace that must be refused.
inline std::string Refusal(const std::string& text) {
  const auto trace = Read(text);
  EXPECT_FALSE(trace) << text;
  return trace ? std::string() : trace.error().message();
}

}  // namespace weir::traces
