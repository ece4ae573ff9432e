#include "store/this_job.h"

#include <cstdlib>
#include <string_view>

namespace assay::store {
namespace {

// "UID:PROJECT", because a path may hold colons and a uid does not.
constexpr std::string_view kJobVariable = "ASSAY_JOB";

}  // namespace

std::optional<ThisJob> this_job() {
  const char* value = std::getenv(kJobVariable.data());
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !text.substr(colon + 1).starts_with('/')) {
    return std::nullopt;
  }
  return ThisJob{location_in(text.substr(colon + 1)), std::string(text.substr(0, colon))};
}

void tell_job(const ThisJob& job, std::vector<std::string>& environment) {
  const std::string key = std::string(kJobVariable) + "=";
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(key); });
  environment.push_back(key + job.uid + ":" + job.location.project.string());
}

}  // namespace assay::store
