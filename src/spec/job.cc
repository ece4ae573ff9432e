#include "spec/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "spec/parameters.h"

namespace assay::spec {
namespace {

constexpr std::size_t kMostParts = 1000;

base::Result<MixPart> parse_part(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  MixPart part{.path = std::string(base::trim(text.substr(0, equals)))};
  const std::string_view number =
      equals == std::string_view::npos ? std::string_view() : base::trim(text.substr(equals + 1));
  part.weight = base::parse_number<double>(number).value_or(0);
  if (part.weight > 0 && part.weight <= 1e9 && !part.path.empty()) return part;
  return base::fail(base::usage_error(
      {}, fmt::format("'{}' is not a path, '=' and a positive weight", base::trim(text)),
      "for example \"web=0.7, code=0.3\""));
}

}  // namespace

std::optional<std::int64_t> training_steps(const JobSpec& job) {
  if (job.train.steps) return job.train.steps;
  if (job.train.tokens) return *job.train.tokens / job.tokens_per_step();
  if (!job.train.tokens_per_matmul_parameter) return std::nullopt;
  // long double holds every count that rules.cc lets through.
  const long double tokens = static_cast<long double>(*job.train.tokens_per_matmul_parameter) *
                             static_cast<long double>(parameters_of(job.model).matmul);
  return static_cast<std::int64_t>(tokens / static_cast<long double>(job.tokens_per_step()));
}

std::optional<std::int64_t> training_tokens(const JobSpec& job) {
  const auto steps = training_steps(job);
  return steps ? std::optional(*steps * job.tokens_per_step()) : std::nullopt;
}

base::Result<std::vector<MixPart>> parse_mix(std::string_view text) {
  std::vector<MixPart> parts;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    ASSAY_TRY(MixPart part, parse_part(text.substr(0, comma)));
    parts.push_back(std::move(part));
    if (parts.size() > kMostParts) {
      return base::fail(base::usage_error({}, fmt::format("has more than {} parts", kMostParts)));
    }
    if (comma == text.size()) return parts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace assay::spec
