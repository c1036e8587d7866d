#include "scheduler/sim/coflowsim/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace weir::scheduler::coflowsim {
namespace {

struct NamedPolicy {
  Policy policy;
  std::string_view name;
};

constexpr NamedPolicy kPolicies[] = {{Policy::kFair, "FAIR"}, {Policy::kPfp, "PFP"},  {Policy::kFifo, "FIFO"},
                                     {Policy::kScf, "SCF"},   {Policy::kNcf, "NCF"},  {Policy::kLcf, "LCF"},
                                     {Policy::kSebf, "SEBF"}, {Policy::kDark, "DARK"}};

}  // namespace

std::string_view PolicyName(Policy policy) {
  return std::find_if(std::begin(kPolicies), std::end(kPolicies),
                      [policy](const NamedPolicy& named) { return named.policy == policy; })
      ->name;
}

Result<Policy> PolicyFromName(std::string_view name) {
  std::string capitals(name);
  std::transform(capitals.begin(), capitals.end(), capitals.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const NamedPolicy& named : kPolicies) {
    if (named.name == capitals) {
      return named.policy;
    }
  }
  return Error(
      StatusCode::kInvalidArgument,
      fmt::format("policy of CoflowSim: found \"{}\", allowed: FAIR, PFP, FIFO, SCF, NCF, LCF, SEBF, DARK", name));
}

}  // namespace weir::scheduler::coflowsim
