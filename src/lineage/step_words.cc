#include "lineage/step_words.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "lineage/environment.h"
#include "lineage/rerun.h"
#include "store/steps.h"
#include "store/store.h"

namespace assay::lineage {

base::Result<std::vector<std::string>> step_words(const std::string& number,
                                                  const std::vector<std::string>& sets) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), step);
  if (error != std::errc{} || end != number.data() + number.size()) {
    return base::fail(base::usage_error("run", fmt::format("'@{}' names no step", number),
                                        "@1, @2, …: `assay status` lists them"));
  }
  std::error_code gone;
  const std::filesystem::path directory = std::filesystem::current_path(gone);
  if (gone) return base::fail(base::unfit_error("the working directory", "is gone"));
  ASSAY_TRY(const auto location, store::find(directory));
  if (!location) {
    return base::fail(base::usage_error("run", fmt::format("there is no step {}", step),
                                        "nothing has been recorded here yet"));
  }
  ASSAY_TRY(store::Store store, store::Store::open(*location, store::Program{}));
  ASSAY_TRY(const store::Job job, store::step_job(store, step));
  ASSAY_TRY(std::vector<std::string> words, rerun_words(job.command, sets));
  for (const std::string& word : words) {
    if (is_redacted(word)) {
      return base::fail(base::usage_error(fmt::format("step {}", step),
                                          fmt::format("its command held a secret: '{}'", word),
                                          "secrets are not kept; give the whole command again"));
    }
  }
  return words;
}

}  // namespace assay::lineage
