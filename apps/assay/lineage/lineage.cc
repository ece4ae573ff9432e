// assay lineage PATH|HASH: what a file came from, and what came from it.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/process/environment.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "lineage/graph/dag_query.h"
#include "lineage/graph/dag_text.h"
#include "lineage/graph/run_json.h"
#include "lineage/source/commit_files.h"
#include "store/labels.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

struct LineageOptions {
  std::string what, depth;
  bool up = false;
  bool down = false;
};

void print_tree(const Session& session, const char* title, const std::string& tree) {
  session.print(fmt::format("{}\n{}", title, tree));
}

// For files that no run made and that are in git: adds the commit. `asker` is a run that read the
// file in question, because the graph may have no run that read it.
base::Result<void> add_origins(store::Store& store, store::RunId asker, lineage::Dag& dag) {
  lineage::CommitFiles commits(base::Environment::from_current().values());
  std::map<store::RunId, std::optional<store::Git>> checkouts;
  for (lineage::DagFile& file : dag.files) {
    if (file.producer || (file.consumers.empty() && asker == 0)) continue;
    const store::RunId reader =
        file.consumers.empty() ? asker : dag.runs[file.consumers.front()].run.id;
    auto known = checkouts.find(reader);
    if (known == checkouts.end()) {
      ASSAY_TRY(store::RunRecord run, store::head_of(store, reader, store::WithContext::kYes));
      known = checkouts.emplace(reader, std::move(run.context.git)).first;
    }
    if (!known->second || known->second->commit.empty()) continue;
    const store::Git& git = *known->second;
    const std::string commit = git.commit.substr(0, 7);
    if (commits.has_unchanged(git, file.path)) {
      file.origin = "in git at " + commit;
    } else if (commits.in_commit(git, file.path)) {
      file.origin = fmt::format("in git at {}, with uncommitted changes", commit);
    } else if (commits.has(git, file.path)) {
      file.origin = fmt::format("untracked at {}, in the recorded diff", commit);
    }
  }
  return {};
}

base::Result<base::ExitCode> show_lineage(const Session& session, const LineageOptions& options) {
  lineage::Reach reach;
  if (!options.depth.empty()) {
    ASSAY_TRY(reach.depth, number_option<std::int64_t>("lineage --depth", options.depth, 0));
  }
  const bool both = options.up == options.down;
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(lineage::Artifact artifact, lineage::resolve_artifact(store, options.what, directory));
  ASSAY_TRY(const DescribedFile described, describe_file(store, artifact));
  base::Json json = {{"artifact",
                      {{"path", artifact.path},
                       {"blake3", artifact.blake3 ? base::Json(artifact.blake3->hex()) : nullptr},
                       {"size", artifact.size}}},
                     {"on_disk", to_json(described.state)}};
  const std::string name = lineage::shown_path(artifact.path, directory);
  if (!described.text.empty()) {
    session.print(fmt::format("{}: {}\n\n", base::printable(name), described.text));
  }
  if (both || options.up) {
    reach.up = true;
    reach.down = false;
    ASSAY_TRY(lineage::Dag dag, lineage::dag_around(store, artifact, reach));
    ASSAY_TRY_VOID(add_origins(store, described.state.made ? 0 : described.state.run, dag));
    if (session.json) json["upstream"] = lineage::dag_json(dag);
    print_tree(session, "came from",
               lineage::lineage_up_text(lineage::view_of(dag, directory), shown_commands()));
  }
  if (both) session.print("\n");
  if (both || options.down) {
    reach.up = false;
    reach.down = true;
    ASSAY_TRY(const lineage::Dag dag, lineage::dag_around(store, artifact, reach));
    if (session.json) json["downstream"] = lineage::dag_json(dag);
    print_tree(session, "went into",
               lineage::lineage_down_text(lineage::view_of(dag, directory), shown_commands()));
  }
  session.print_json(json);
  if (base::printable(name) == name && !name.empty()) {
    session.next(fmt::format("assay dag {}", base::path_argument(name)));
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
