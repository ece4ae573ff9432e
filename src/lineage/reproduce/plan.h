// The plan for reproducing an artifact: the source, the stages in order, the external files, and
// how this machine differs. Planning changes nothing; run_plan.h executes the plan.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "hash/digest.h"
#include "lineage/graph/dag.h"
#include "lineage/reproduce/environment_diff.h"
#include "lineage/reproduce/make_environment.h"
#include "store/run.h"

namespace assay::lineage {

enum class InputState {
  kMade,       // by an earlier stage of the plan
  kInGit,      // part of the commit or of the stored diff
  kUnchanged,  // at its path, with the content that was read
  kElsewhere,  // the content is at another path: `found`
  kArchived,   // it is in the archive: `found`
  kChanged,    // another content is at its path
  kMissing,
};
std::string_view to_text(InputState state);

// A file that a stage reads and no earlier stage produces.
struct ExternalInput {
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;  // -1: not known
  InputState state = InputState::kMissing;
  std::string found;                                       // where the content can be copied from
  std::optional<SameContent> same_content = std::nullopt;  // a run that left it at another path
};

struct PlannedStage {  // NOLINT(bugprone-exception-escape): as store::Context
  store::RunRecord run;
  std::vector<ExternalInput> externals;
  std::set<std::string> made_before;  // inputs that earlier stages produce
  std::vector<std::string> outside;   // outputs that are not in the project
  // Standard output or error that is shown and not compared: it went outside the project, or to a
  // file that other stages write as well.
  std::vector<std::string> streams;
  std::vector<std::string> secrets;  // variables that must be set here
  bool redacted_command = false;     // the command contained a secret
};

// A reason why a plan cannot be run.
struct Obstacle {
  std::string text;      // one sentence
  bool outside = false;  // the obstacle is an output outside the project, which the user can allow
  bool environment = false;  // it is a missing environment, which can be made
};

struct ReproductionPlan {
  std::string artifact_path;
  std::optional<hash::Digest> artifact;
  std::vector<std::string> folder_files = {};  // if it is a folder: the files that runs left in it
  std::string
      root;  // the folder that is copied: the project's, or that of the repository that contains it
  std::vector<PlannedStage> stages;
  std::set<std::string> environments;  // in the root, used in place (environments.h)
  std::vector<MissingEnvironment> missing_environments = {};  // an obstacle each
  std::vector<EnvironmentDifference> differences;
  std::vector<Obstacle> obstacles;
  std::vector<std::string> notes;
};

struct PlanInput {
  std::vector<store::RunRecord> runs;  // in order, with lists and context
  std::string project_root;
  std::string artifact_path;
  std::optional<hash::Digest> artifact;
  std::vector<std::string> folder_files = {};
  std::vector<EnvironmentDifference> differences;
  // Other paths where a content was seen, newest first.
  std::map<hash::Digest, std::vector<std::string>> places = {};
  // For external inputs: the run that left the same content at another path before.
  std::map<std::pair<store::RunId, std::string>, SameContent> same_contents = {};
  // The archive's file with this content; nothing: it is not archived.
  std::function<std::optional<std::string>(const hash::Digest&)> archived = {};
  std::map<std::string, std::string> environment;  // of this process
};

ReproductionPlan make_plan(PlanInput input);

// For `assay reproduce --json` (docs/reproduce.md).
base::Json to_json(const ReproductionPlan& plan);

}  // namespace assay::lineage
