#include "tools/weir-perf/doctor.h"

#include <algorithm>

namespace weir::tools {
namespace {

const char* WeightName(Finding::Weight weight) {
  switch (weight) {
    case Finding::Weight::kGood:
      return "good";
    case Finding::Weight::kAdvice:
      return "advice";
    case Finding::Weight::kMissing:
      return "missing";
  }
  return "";
}

}  // namespace

bool Diagnosis::usable() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& one) { return one.weight == Finding::Weight::kMissing; });
}

std::vector<Diagnosis> Diagnose(const BackendSettings& settings) {
  std::vector<Diagnosis> diagnoses;
  for (const Backend& backend : Backends()) {
    diagnoses.push_back({std::string(backend.name), std::string(backend.summary), backend.examine(settings)});
  }
  return diagnoses;
}

Sheet DoctorSheet(const std::vector<Diagnosis>& diagnoses) {
  Sheet sheet;
  sheet.title = "What this host can use";
  sheet.columns = {{"backend", "backend"}, {"usable", "usable"}, {"verdict", "verdict"},
                   {"what", "what"},       {"found", "found"},   {"advice", "what to do"}};
  for (const Diagnosis& one : diagnoses) {
    for (const Finding& finding : one.findings) {
      sheet.rows.push_back({Text(one.backend), Text(one.usable() ? "yes" : "no"), Text(WeightName(finding.weight)),
                            Text(finding.what), Text(finding.found), Text(finding.advice)});
    }
  }
  return sheet;
}

void PrintDoctor(const std::vector<Diagnosis>& diagnoses, std::ostream* out) {
  for (const Diagnosis& one : diagnoses) {
    *out << one.backend << ": " << (one.usable() ? "usable" : "not usable here") << " (" << one.summary << ")\n";
    for (const Finding& finding : one.findings) {
      const char* sign = finding.weight == Finding::Weight::kGood     ? "  + "
                         : finding.weight == Finding::Weight::kAdvice ? "  ~ "
                                                                      : "  - ";
      *out << sign << finding.what << ": " << finding.found << '\n';
      if (!finding.advice.empty()) *out << "      " << finding.advice << '\n';
    }
  }
}

}  // namespace weir::tools
