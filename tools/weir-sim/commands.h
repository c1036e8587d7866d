#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "tools/weir-sim/options.h"

/// The commands of weir-sim, one file each. They print data on the standard output
/// and complaints on the standard error, and return what the program exits with.
namespace weir::tools {

inline constexpr int kFailed = 1;       ///< A file cannot be opened or written.
inline constexpr int kWrongUsage = 2;   ///< A command, a flag or a value that is not allowed.
inline constexpr int kBadTrace = 3;     ///< The trace is not well formed.
inline constexpr int kUnsupported = 4;  ///< Well formed, but this policy or format cannot do it.

/// Prints `status` and returns the exit code for it: kNotFound, kPermissionDenied and kUnavailable 1, kProtocol 3,
/// kUnsupported 4, the others 2.
int Fail(const Status& status);

int RunCommand(const Options& options);
int CompareCommand(const Options& options);
/// `run` and `compare` as CoflowSim does it, for --compat; see scheduler/sim/coflowsim.
int RunCompat(const Options& options, const std::vector<std::string>& policies);
/// `convert` with --compat: the problem that CoflowSim is given.
int ConvertCompat(const Options& options);
int ExplainCommand(const Options& options);
int ConvertCommand(const Options& options);
int GenerateCommand(const Options& options);
int PoliciesCommand(const Options& options);

/// A flag as the help shows it.
struct FlagHelp {
  std::string name, what, default_value;
};

/// The help of one command, or of the program for ""; `flags` are those of the command. Returns 0, or kWrongUsage if
/// there is no such command.
int HelpCommand(std::string_view command, std::span<const FlagHelp> flags);

}  // namespace weir::tools
