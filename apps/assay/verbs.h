// The verbs of `assay`.
#pragma once

#include "cli/verb.h"

namespace assay::cli {

Verb bench_verb(const Session& session);
Verb compare_verb(const Session& session);
Verb report_verb(const Session& session);
Verb presets_verb(const Session& session);
Verb plan_verb(const Session& session);
Verb train_verb(const Session& session);
Verb generate_verb(const Session& session);
Verb score_verb(const Session& session);
Verb data_verb(const Session& session);
Verb checkpoint_verb(const Session& session);
// assay checkpoint diff, a part of it.
Verb checkpoint_diff_verb(const Session& session);
Verb init_verb(const Session& session);
Verb run_verb(const Session& session);
Verb log_metric_verb(const Session& session);
Verb tracers_verb(const Session& session);
Verb limit_verb(const Session& session);
Verb top_verb(const Session& session);
Verb log_verb(const Session& session);
Verb show_verb(const Session& session);
Verb dag_verb(const Session& session);
Verb lineage_verb(const Session& session);
Verb status_verb(const Session& session);
Verb refresh_verb(const Session& session);
Verb diff_verb(const Session& session);
Verb label_verb(const Session& session);
Verb pop_verb(const Session& session);
Verb gc_verb(const Session& session);
Verb archive_verb(const Session& session);
Verb restore_verb(const Session& session);
Verb pack_verb(const Session& session);
Verb unpack_verb(const Session& session);
Verb reproduce_verb(const Session& session);
Verb export_verb(const Session& session);
// `root` is the whole command line, complete by the time the action runs.
Verb completion_verb(const Session& session, const Verb& root);

}  // namespace assay::cli
