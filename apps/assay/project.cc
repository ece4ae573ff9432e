#include "assay/project.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "lineage/record/recovery.h"
#include "store/location.h"

namespace assay::cli {

namespace fs = std::filesystem;

base::Result<fs::path> working_directory() {
  std::error_code error;
  fs::path directory = fs::current_path(error);
  if (error) {
    return base::fail(base::unfit_error("the working directory", "is gone", "change to another"));
  }
  return directory;
}

base::Result<store::Store> open_store() {
  ASSAY_TRY(const fs::path directory, working_directory());
  ASSAY_TRY(const auto found, store::find(directory));
  ASSAY_TRY(store::Store store, store::Store::open(found ? *found : store::location_in(directory),
                                                   store::StoreProgram{}, store::Access::kRead));
  for (const std::string& note : store.notes()) base::log_warn(note);
  if (store.is_read_only()) return store;
  // A store that cannot be written can still be read.
  if (const auto recovered = lineage::recover_runs(store); !recovered) {
    base::log_warn("an interrupted run could not be finished", {{"why", recovered.error().line()}});
  }
  return store;
}

lineage::Commands shown_commands(bool on_stdout) {
  const bool terminal = on_stdout && base::terminal_columns(STDOUT_FILENO).has_value();
  return terminal ? lineage::Commands::kCut : lineage::Commands::kWhole;
}

base::Result<DescribedFile> describe_file(store::Store& store, lineage::Artifact& artifact) {
  ASSAY_TRY(lineage::DiskFiles disk, lineage::DiskFiles::open(store));
  DescribedFile described;
  ASSAY_TRY(described.state, lineage::read_file_state(store, disk, artifact));
  static_cast<void>(disk.save_hashes());  // only a cache
  described.text = described.state.text(
      base::local_minute_text(described.state.modified_unix_ns, base::system_clock().wall_ns()));
  return described;
}

base::Result<fs::path> results_folder(const std::string& verb, const std::string& requested) {
  if (!requested.empty()) return fs::absolute(requested);
  std::string stamp = base::utc_millis_text(base::system_clock().wall_ns());
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-' || c == '.'; });
  stamp = fmt::format("{}-{}", stamp, ::getpid());
  ASSAY_TRY(const fs::path directory, working_directory());
  ASSAY_TRY(const auto project, store::find(directory));
  if (project && ::access(project->directory.c_str(), W_OK) == 0) {
    return project->directory / verb / stamp;
  }
  std::error_code ignored;
  const fs::path temporary = fs::temp_directory_path(ignored);
  return (temporary.empty() ? fs::path("/tmp") : temporary) /
         fmt::format("assay-{}-{}", verb, stamp);
}

}  // namespace assay::cli
