#include "cli/recorded_project.h"

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"

namespace assay {

RecordedProject::RecordedProject()
    : path_(std::filesystem::canonical(directory_.path())),
      store_(*store::Store::create(store::location_in(path_), {})) {}

store::RunRecord RecordedProject::describe(std::string_view description) {
  std::istringstream words{std::string(description)};
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || word.front() == '-') continue;
    std::string name = word.substr(0, equals);
    name.erase(0, name.find_first_not_of("~+"));
    if (const std::size_t arrow = name.find('>'); arrow != std::string::npos) {
      std::filesystem::remove(path_ / name.substr(0, arrow));
      name.erase(0, arrow + 1);
    }
    std::ofstream(path_ / name) << word.substr(equals + 1);
  }
  return store::testing::run_of(description, path_.string());
}

store::RunId RecordedProject::record(std::string_view description) {
  return record(describe(description));
}

store::RunId RecordedProject::record(const store::RunRecord& run) {
  const auto id = store::record_run(store_, run);
  ASSAY_CHECK(id.has_value(), "a test can record a run");
  return *id;
}

}  // namespace assay
