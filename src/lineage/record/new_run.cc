#include "lineage/record/new_run.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "lineage/record/redirects.h"
#include "lineage/redact/command.h"
#include "store/run_row.h"

namespace assay::lineage {

base::Result<store::RunRecord> new_run(const RunRequest& request, const collect::Launch& launch,
                                       const std::filesystem::path& directory) {
  store::RunRecord run;
  run.command = redact_arguments(request.command);
  run.directory = directory;
  run.redirects = inherited_redirects(launch.inherited);
  run.name = request.name;
  run.build = request.build;
  run.repeats = request.stage;
  run.options = repeatable_options(request);
  run.collector_pid = ::getpid();
  if (const auto stat = base::process_stat(::getpid())) {
    run.collector_start_ticks = stat->start_ticks;
  }
  run.started_unix_ns = base::system_clock().wall_ns();
  ASSAY_TRY(run.uid, store::random_uid());
  return run;
}

}  // namespace assay::lineage
