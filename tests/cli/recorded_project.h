// A project with recorded runs and the files they left, for tests of the verbs that ask about them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/testing/temp_dir.h"
#include "store/run.h"
#include "store/store.h"

namespace assay {

class RecordedProject {
 public:
  RecordedProject();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] store::Store& store() { return store_; }

  // As store::testing::run_of() describes it; every file named gets its content, word for word.
  store::RunId record(std::string_view description);
  store::RunId record(const store::RunRecord& run);
  // The run that record() would record.
  store::RunRecord describe(std::string_view description);

 private:
  base::testing::TempDir directory_;
  std::filesystem::path path_;
  store::Store store_;
};

}  // namespace assay
