#include "observe/collect/process/variables.h"

namespace assay::collect {

void join(std::vector<std::string>& environment, std::string_view key, const std::string& value,
          Place place) {
  std::string entry = value;
  std::erase_if(environment, [&](const std::string& old) {
    if (!old.starts_with(key)) return false;
    const std::string had = old.substr(key.size());
    if (!had.empty()) entry = place == Place::kFirst ? entry + ":" + had : had + ":" + entry;
    return true;
  });
  environment.push_back(std::string(key) + entry);
}

std::string_view value_of(const std::vector<std::string>& environment, std::string_view key) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(key)) return std::string_view(variable).substr(key.size());
  }
  return {};
}

}  // namespace assay::collect
