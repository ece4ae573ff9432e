#include "lineage/record/run.h"

#include <filesystem>

#include "base/terminal.h"
#include "lineage/record/recovery.h"
#include "observe/collect/process/launch.h"
#include "store/store.h"

namespace assay::lineage {
namespace {

// The collector was killed and the command ended without it: what it had seen is in its event log.
void finish_for_the_dead(const collect::Kept& kept) {
  std::error_code error;
  const auto directory = std::filesystem::current_path(error);
  if (error) return;
  const auto location = store::find(directory);
  if (!location || !*location) return;
  auto store = store::Store::open(**location, store::Program{});
  std::optional<EndedRun> ended;
  if (kept.wait_status) ended = {kept.collector, *kept.wait_status};
  if (store && recover_runs(*store, ended)) {
    base::write_stderr(
        "assay: the collector was killed; what it had seen is kept as an interrupted run, see "
        "`assay show last`\n");
  }
}

}  // namespace

base::Result<collect::Kept> run_command(const RunRequest& request) {
  auto kept = collect::run_kept(request.wait, [&](collect::Channel& channel) {
    // Never destroyed: closing the store would move its log into it and wait for the disk, which
    // the next run would wait for again.
    return (new Recorder(request, channel))->record();
  });
  if (!kept) {
    base::Error why = kept.error();
    if (!request.gpu_limits.empty()) {
      why.what = "not run, because limits could not be kept: " + why.what;
      return base::fail(std::move(why));
    }
    // Not even two processes can be had. The command still can.
    why.what = "this run is not recorded: " + why.what;
    base::write_stderr("assay: " + why.line() + "\n");
    const base::Error failed = collect::become(request.words);
    base::write_stderr("assay: " + failed.line() + "\n");
    return collect::Kept{.collector_status = exit_code_of(failed)};
  }
  if (kept->collector_lost) finish_for_the_dead(*kept);
  return kept;
}

}  // namespace assay::lineage
