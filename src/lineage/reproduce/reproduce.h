// The plan for making an artifact again: which source, which stages in which order, which files
// from outside, and what is different here. Looking only; reproduce_run.h does it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "hash/digest.h"
#include "lineage/graph/dag.h"
#include "store/run.h"

namespace assay::lineage {

// Something that was so when it was recorded and is not so here.
struct Difference {
  std::string what;  // "pip numpy", "driver", "cpu"
  std::string recorded;
  std::string here;  // "not installed", "unknown"
};

enum class SourceState {
  kMade,       // by an earlier stage of the plan
  kInGit,      // part of the commit or of the stored difference
  kUnchanged,  // at its place, with the content that was read
  kElsewhere,  // the content is at another place: `found`
  kChanged,    // at its place is another content
  kMissing,
};
std::string_view to_text(SourceState state);

// A file that a stage reads and no stage makes.
struct External {
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;  // -1: not known
  SourceState state = SourceState::kMissing;
  std::string found;                        // where the content can be copied from
  std::optional<Twin> twin = std::nullopt;  // who left the same content elsewhere
};

struct PlanStage {
  store::RunRecord run;
  std::vector<External> externals;
  std::set<std::string> made_before;  // inputs that earlier stages make
  std::vector<std::string> outside;   // outputs that are not in the project
  // Standard output or error that is shown and not compared: it went outside the project, or to a
  // file that other stages write as well.
  std::vector<std::string> streams;
  std::vector<std::string> secrets;  // variables that must be set here
  bool redacted_words = false;       // the command itself lost a secret
};

// What keeps a plan from being run.
struct Obstacle {
  std::string text;      // one sentence
  bool outside = false;  // a file outside the project would be written again: may be allowed
};

struct Plan {
  std::string artifact_path;  // what was asked for
  std::optional<hash::Digest> artifact;
  std::string root;  // the folder that is copied: the project's, or the repository's around it
  std::vector<PlanStage> stages;
  std::vector<Difference> differences;
  std::vector<Obstacle> obstacles;
  std::vector<std::string> notes;
};

struct PlanInput {
  std::vector<store::RunRecord> runs;  // in order, with lists and context
  std::string project_root;
  std::string artifact_path;
  std::optional<hash::Digest> artifact;
  std::vector<Difference> differences;
  // Other places where a content was seen, newest first.
  std::map<hash::Digest, std::vector<std::string>> places = {};
  // Of inputs from outside: who left the same content at another path before.
  std::map<std::pair<store::RunId, std::string>, Twin> twins = {};
  std::map<std::string, std::string> environment;  // of this process
};

Plan make_plan(PlanInput input);

base::Json to_json(const Plan& plan);

// What is not here as it was then: packages by manager and name, operating system, CPU, GPUs,
// driver. `machine_here` is machine_facts().
std::vector<Difference> differences_to_here(const std::vector<store::RunRecord>& runs,
                                            const base::Json& machine_here);

}  // namespace assay::lineage
