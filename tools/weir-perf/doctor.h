#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/weir-perf/backends.h"
#include "tools/weir-perf/sheet.h"

namespace weir::tools {

/// What was found for one backend.
struct Diagnosis {
  std::string backend;
  std::string summary;
  std::vector<Finding> findings;

  /// Nothing is missing.
  bool usable() const;
};

/// Asks every backend about this host.
std::vector<Diagnosis> Diagnose(const BackendSettings& settings);

/// A row for each finding.
Sheet DoctorSheet(const std::vector<Diagnosis>& diagnoses);
/// For people: a paragraph for each backend, with what to do under what was found.
void PrintDoctor(const std::vector<Diagnosis>& diagnoses, std::ostream* out);

}  // namespace weir::tools
