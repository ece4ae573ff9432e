// assay lineage PATH|HASH: what a file came from, and what came from it.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_export.h"
#include "lineage/graph/dag_query.h"
#include "lineage/graph/dag_text.h"
#include "store/labels.h"

namespace assay::cli {
namespace {

struct LineageOptions {
  std::string what, depth;
  bool up = false;
  bool down = false;
};

void print_tree(const Session& session, const char* title, const std::string& tree) {
  session.print(fmt::format("{}\n{}\n", title, tree));
}

base::Result<base::ExitCode> show_lineage(const Session& session, const LineageOptions& options) {
  lineage::Reach reach;
  if (!options.depth.empty()) {
    ASSAY_TRY(reach.depth, count_option("lineage", "--depth", options.depth));
  }
  const bool both = options.up == options.down;
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::Artifact artifact,
            lineage::resolve_artifact(store, options.what, directory));
  base::Json json = {{"artifact",
                      {{"path", artifact.path},
                       {"blake3", artifact.blake3 ? base::Json(artifact.blake3->hex()) : nullptr},
                       {"size", artifact.size}}}};
  if (both || options.up) {
    reach.up = true;
    reach.down = false;
    ASSAY_TRY(const lineage::Dag dag, lineage::dag_around(store, artifact, reach));
    if (session.json) json["upstream"] = lineage::dag_json(dag);
    print_tree(session, "came from", lineage::lineage_up_text(lineage::view_of(dag, directory)));
  }
  if (both || options.down) {
    reach.up = false;
    reach.down = true;
    ASSAY_TRY(const lineage::Dag dag, lineage::dag_around(store, artifact, reach));
    if (session.json) json["downstream"] = lineage::dag_json(dag);
    print_tree(session, "went into", lineage::lineage_down_text(lineage::view_of(dag, directory)));
  }
  session.print_json(json);
  const std::string shown = lineage::shown_path(artifact.path, directory);
  if (base::printable(shown) == shown) {
    session.print(fmt::format("next: assay dag {}\n", base::shell_quoted(shown)));
  }
  return base::ExitCode::kYes;
}

}  // namespace

Verb lineage_verb(const Session& session) {
  const auto given = std::make_shared<LineageOptions>();
  return {.name = "lineage",
          .description = "show what a file came from, and what came from it",
          .examples = {"assay lineage model.bin", "assay lineage model.bin --up --depth 1 --json"},
          .arguments = {{"WHAT",
                         "a path, the first digits of a hash, or a label",
                         &given->what,
                         true,
                         {},
                         true}},
          .options = {{"--up", "only what it came from", &given->up},
                      {"--down", "only what came from it", &given->down},
                      {"--depth", "at most N runs away", &given->depth, {}, "N"}},
          .action = [&session, given] { return show_lineage(session, *given); }};
}

}  // namespace assay::cli
