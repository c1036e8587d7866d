#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "tools/weir-sim/commands.h"

namespace weir::tools {
namespace {

struct CommandHelp {
  std::string_view name;
  std::string_view what;
  std::string_view example;
};

constexpr CommandHelp kCommands[] = {
    {"run", "replay a trace under one policy",
     "  weir-sim run --trace FB2010-1Hr-150-0.txt --policy ls --cct_csv ccts.csv\n"
     "  weir-sim run --trace FB2010-1Hr-150-0.txt --policy \"order=dclas factor=2 queues=20\" --output json\n"
     "  weir-sim run --trace FB2010-1Hr-150-0.txt --compat coflowsim --policy SEBF\n"},
    {"compare", "several policies side by side",
     "  weir-sim compare --trace FB2010-1Hr-150-0.txt --units coflowsim --policies sebf,ls,pilots\n"},
    {"explain", "why a coflow waited, for whom, on which link",
     "  weir-sim explain --trace FB2010-1Hr-150-0.txt --policy ls --coflow 3\n"},
    {"convert", "write a trace in another format, scaled or skewed if asked",
     "  weir-sim convert --trace FB2010-1Hr-150-0.txt --scale_bytes 0.5 --format weir --out half.jsonl\n"},
    {"generate", "make a trace out of a seed",
     "  weir-sim generate --seed 1 --out look-alike.jsonl\n"
     "  weir-sim generate --pattern ring --jobs 4 --ranks 8 --out rings.jsonl\n"},
    {"policies", "list the policies and the paper each comes from", "  weir-sim policies --output json\n"},
};

void PrintProgram() {
  std::cout << "weir-sim " WEIR_VERSION
               ": compares coflow schedulers on a trace.\n\nUsage: weir-sim COMMAND [--flag "
               "value]...\n\n";
  for (const CommandHelp& command : kCommands) {
    std::cout << fmt::format("  {:<10} {}\n", command.name, command.what);
  }
  std::cout << "\n\"weir-sim help COMMAND\" lists its flags. Example:\n" << kCommands[1].example;
}

void PrintFlags(std::span<const FlagHelp> flags) {
  for (const FlagHelp& flag : flags) {
    const std::string value = flag.default_value.empty() ? "" : fmt::format(" (default {})", flag.default_value);
    std::cout << fmt::format("  --{:<18} {}{}\n", flag.name, flag.what, value);
  }
}

}  // namespace

int HelpCommand(std::string_view name, std::span<const FlagHelp> flags) {
  if (name.empty()) {
    PrintProgram();
    return 0;
  }
  const auto* command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                     [name](const CommandHelp& candidate) { return candidate.name == name; });
  if (command == std::end(kCommands)) {
    return Fail(Status(StatusCode::kInvalidArgument,
                       fmt::format("no command \"{}\" to help with; \"weir-sim help\" lists the commands", name)));
  }
  std::cout << fmt::format("weir-sim {}: {}.\n\n", command->name, command->what);
  PrintFlags(flags);
  std::cout << "\nExample:\n" << command->example;
  return 0;
}

}  // namespace weir::tools
