#include "scheduler/policy/policy.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

namespace weir::scheduler {
namespace {

constexpr std::string_view kKeys =
    "order, factor, first_limit, queues, pilots_min, pilot_share, sample, history, shrink, age_bound, admission, "
    "rate, backfill";

/// A number in [low, high] given for `key`.
Result<double> Number(std::string_view key, std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < low || value > high) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("policy key {}: found \"{}\", allowed: a number from {} to {}", key, text, low, high));
  }
  return value;
}

Status SetRateKey(std::string_view key, std::string_view text, RateOptions* options) {
  if (key == "rate") {
    options->name = text;
    return Status::Ok();
  }
  if (text != "on" && text != "off") {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("policy key {}: found \"{}\", allowed: on, off", key, text));
  }
  options->backfill = text == "on";
  return Status::Ok();
}

Status SetOrderKey(std::string_view key, std::string_view text, OrderOptions* options) {
  struct Whole {
    std::string_view key;
    std::int64_t* value;
    double low, high;
  };
  struct Real {
    std::string_view key;
    double* value;
    double low, high;
  };
  const Whole wholes[] = {{"first_limit", &options->first_limit, 1, 1e15},
                          {"queues", &options->queues, 1, 1000},
                          {"pilots_min", &options->pilots_min, 1, 1e6}};
  const Real reals[] = {{"factor", &options->factor, 1.01, 1e6},
                        {"pilot_share", &options->pilot_share, -1, 1},
                        {"shrink", &options->shrink, -1, 1e9},
                        {"age_bound", &options->age_bound, 0, 1e9}};
  if (key == "order") {
    options->name = text;
    return Status::Ok();
  }
  if (key == "sample") {
    options->sample = text == "pilots" ? SampledFlows::kPilots : SampledFlows::kEnded;
    return text == "pilots" || text == "ended"
               ? Status::Ok()
               : Status(StatusCode::kInvalidArgument,
                        fmt::format("policy key sample: found \"{}\", allowed: pilots, ended", text));
  }
  if (key == "admission" || key == "history") {
    (key == "admission" ? options->admission : options->history) = text == "on";
    return text == "on" || text == "off"
               ? Status::Ok()
               : Status(StatusCode::kInvalidArgument,
                        fmt::format("policy key {}: found \"{}\", allowed: on, off", key, text));
  }
  for (const Whole& whole : wholes) {
    if (whole.key == key) {
      const auto value = Number(key, text, whole.low, whole.high);
      *whole.value = value ? static_cast<std::int64_t>(*value) : *whole.value;
      return value ? Status::Ok() : value.error();
    }
  }
  for (const Real& real : reals) {
    if (real.key == key) {
      const auto value = Number(key, text, real.low, real.high);
      *real.value = value.value_or(*real.value);
      return value ? Status::Ok() : value.error();
    }
  }
  return Status(StatusCode::kInvalidArgument, fmt::format("policy key \"{}\" is not known; allowed: {}", key, kKeys));
}

}  // namespace

Result<PolicyOptions> ParsePolicy(std::string_view text) {
  PolicyOptions options;
  std::size_t at = 0;
  bool any = false;
  while ((at = text.find_first_not_of(' ', at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t equals = word.find('=');
    const bool bare = equals == std::string_view::npos;
    const std::string_view key = bare ? "order" : word.substr(0, equals);
    const std::string_view value = bare ? word : word.substr(equals + 1);
    if (Status status = key == "rate" || key == "backfill" ? SetRateKey(key, value, &options.rate)
                                                           : SetOrderKey(key, value, &options.order);
        !status.ok()) {
      return tl::unexpected(std::move(status));
    }
    any = true;
    at = end;
  }
  if (!any) {
    return Error(StatusCode::kInvalidArgument, "the policy is empty; \"weir-sim policies\" lists the names");
  }
  if (options.order.sample == SampledFlows::kByRate) {
    options.order.sample = options.rate.name == kMatching ? SampledFlows::kEnded : SampledFlows::kPilots;
  }
  if (const auto order = MakeOrder(options.order); !order) {
    return tl::unexpected(order.error());
  }
  if (const auto rate = MakeRate(options.rate); !rate) {
    return tl::unexpected(rate.error());
  }
  if (options.order.admission && options.rate.name != kMatching) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("policy key rate: found \"{}\" with admission=on, which can keep its promises only with "
                             "rate=matching",
                             options.rate.name));
  }
  return options;
}

}  // namespace weir::scheduler
