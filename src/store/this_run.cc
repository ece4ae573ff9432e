#include "store/this_run.h"

#include <cstdlib>
#include <string_view>

namespace assay::store {
namespace {

// "UID:PROJECT", because a path may hold colons and a uid does not.
constexpr std::string_view kRunVariable = "ASSAY_RUN";

}  // namespace

std::optional<ThisRun> this_run() {
  const char* value = std::getenv(kRunVariable.data());
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !text.substr(colon + 1).starts_with('/')) {
    return std::nullopt;
  }
  return ThisRun{location_in(text.substr(colon + 1)), std::string(text.substr(0, colon))};
}

void set_run_variable(const ThisRun& run, base::Environment& environment) {
  environment.set(kRunVariable, run.uid + ":" + run.location.project.string());
}

}  // namespace assay::store
