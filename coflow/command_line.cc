#include "coflow/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

// What gflags calls to end the program; part of its library, though of no header.
namespace GFLAGS_NAMESPACE {
extern GFLAGS_DLL_DECL void (*gflags_exitfunc)(int);
}

namespace weir {
namespace {

constexpr int kExitUsage = 2;

/// gflags ends with 1 after an error, and after help as well.
[[noreturn]] void EndAfterError(int code) {
  if (code != 0) std::fprintf(stderr, "Try %s --help.\n", gflags::ProgramInvocationShortName());
  std::exit(code == 0 ? 0 : kExitUsage);
}

std::string Dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void PrintFlags(const std::string& file) {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  std::erase_if(flags, [&](const auto& flag) { return flag.filename != file; });
  std::sort(flags.begin(), flags.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::printf("\nFlags:\n");
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    const bool has_default = !flag.default_value.empty() && flag.type != "bool";
    std::printf("  --%-14s %s%s%s%s\n", Dashed(flag.name).c_str(), flag.description.c_str(),
                has_default ? " (default " : "", has_default ? flag.default_value.c_str() : "", has_default ? ")" : "");
  }
}

bool AsksForHelp() {
  std::string value;
  return gflags::GetCommandLineOption("help", &value) && value == "true";
}

}  // namespace

void ParseCommandLine(const std::string& usage, const char* main_file, int* argc, char*** argv) {
  gflags::SetUsageMessage(usage);
  gflags::SetVersionString(WEIR_VERSION);
  GFLAGS_NAMESPACE::gflags_exitfunc = EndAfterError;
  gflags::ParseCommandLineNonHelpFlags(argc, argv, true);
  if (AsksForHelp()) {
    std::printf("%s: %s\n", gflags::ProgramInvocationShortName(), usage.c_str());
    PrintFlags(main_file);
    std::exit(0);
  }
  GFLAGS_NAMESPACE::gflags_exitfunc = [](int) { std::exit(0); };  // The other ways to ask for help, and --version.
  gflags::HandleCommandLineHelpFlags();
}

}  // namespace weir
