#include "lineage/graph/merged_runs.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/artifacts.h"
#include "store/path_facts.h"
#include "store/run_reader.h"
#include "store/stages.h"
#include "store/streams.h"

namespace assay::lineage {
namespace {

using store::Output;
using store::RunId;
using store::RunRecord;

// At most this many earlier runs are considered: a stage may have been repeated every hour for a
// year.
constexpr std::size_t kMostEarlier = 100;
// And at most this many of their outputs, so that `status` does not take seconds.
constexpr std::int64_t kMostOutputs = 300'000;

base::Result<void> load_outputs(store::Store& store, RunRecord& run) {
  return store::each_output(store, run.id, -1,
                            [&](Output output) { run.outputs.push_back(std::move(output)); });
}

base::Result<void> load_inputs(store::Store& store, RunRecord& run) {
  return store::each_input(store, run.id, -1,
                           [&](store::Input input) { run.inputs.push_back(std::move(input)); });
}

// Whether a fact of an earlier run still applies. Links do, since they lead to what it read;
// folders that it listed and files that it did not find do not, since a later run has listed and
// looked for its own.
bool still_applies(const store::PathFact& fact) {
  return fact.kind == store::PathFact::Kind::kFollowedLink ||
         fact.kind == store::PathFact::Kind::kMadeLink;
}

// The paths that the run left, except logs.
std::set<std::string> left_by(const RunRecord& run) {
  const std::set<std::string> streams = store::stream_paths(run);
  std::set<std::string> left;
  for (const Output& output : run.outputs) {
    if (output.status == store::OutputStatus::kDeleted || streams.contains(output.path)) continue;
    left.insert(output.path);
  }
  return left;
}

// Paths that later runs of the stage have read, written or removed: what earlier runs did there no
// longer counts.
struct LaterRuns {
  std::unordered_set<std::string> read, written;
  std::set<std::pair<store::PathFact::Kind, std::string>> facts;

  // A later run looked for the file, did not find it, and succeeded without it.
  [[nodiscard]] bool is_absent(const std::string& path) const {
    return facts.contains({store::PathFact::Kind::kAbsent, path});
  }
  void add(const RunRecord& run) {
    for (const store::Input& input : run.inputs) read.insert(input.path);
    for (const store::PathFact& fact : run.facts) facts.insert({fact.kind, fact.path});
    for (const Output& output : run.outputs) {
      written.insert(output.path);
      if (!output.from.empty()) written.insert(output.from);
    }
  }
};

// What `earlier` left and no later run has written since.
base::Result<std::vector<Output>> still_there(store::Store& store, const RunRecord& earlier,
                                              const LaterRuns& later) {
  const std::set<std::string> left = left_by(earlier);
  std::vector<Output> kept;
  for (const Output& output : earlier.outputs) {
    if (!left.contains(output.path) || later.written.contains(output.path)) continue;
    if (later.is_absent(output.path)) continue;
    // Another stage may have written it.
    ASSAY_TRY(const auto newest, store::latest_at(store, output.path));
    if (newest && newest->run == earlier.id) kept.push_back(output);
  }
  return kept;
}

bool have_common_input(const RunRecord& run, const std::unordered_set<std::string>& inputs) {
  return std::any_of(run.inputs.begin(), run.inputs.end(),
                     [&](const store::Input& input) { return inputs.contains(input.path); });
}

}  // namespace

base::Result<std::unordered_set<std::string>> merge_earlier_runs(store::Store& store,
                                                                 RunRecord& run) {
  ASSAY_TRY(const std::vector<RunId> earlier, store::earlier_runs(store, run, kMostEarlier));
  std::unordered_set<std::string> added;
  if (earlier.empty()) return added;
  const std::set<std::string> own = left_by(run);
  std::unordered_set<std::string> own_inputs;
  for (const store::Input& input : run.inputs) own_inputs.insert(input.path);
  LaterRuns later;
  later.add(run);
  std::unordered_set<std::string> inherited;
  std::int64_t outputs = 0;
  for (const RunId id : earlier) {
    ASSAY_TRY(RunRecord before, store::head_of(store, id));
    outputs += before.output_count;
    if (outputs > kMostOutputs) break;
    ASSAY_TRY_VOID(load_outputs(store, before));
    ASSAY_TRY(before.facts, store::path_facts(store, before.id));
    ASSAY_TRY(std::vector<Output> kept, still_there(store, before, later));
    if (!kept.empty()) {
      ASSAY_TRY_VOID(load_inputs(store, before));
      const std::set<std::string> left = left_by(before);
      const bool repeats = std::includes(left.begin(), left.end(), own.begin(), own.end());
      const bool reads = std::any_of(kept.begin(), kept.end(), [&](const Output& output) {
        return later.read.contains(output.path);
      });
      // The inputs of a run that was not repeated still count if it ran the same command on some of
      // the same files.
      const bool alike = before.command == run.command && have_common_input(before, own_inputs);
      if (!repeats && !reads && !alike) {
        later.add(before);
        continue;
      }
      for (const store::Input& input : before.inputs) {
        // What a later run of the stage wrote is not an input of the stage.
        if (later.read.contains(input.path) || later.written.contains(input.path)) continue;
        if (later.is_absent(input.path)) continue;
        added.insert(input.path);
        run.inputs.push_back(input);
      }
      for (const store::PathFact& fact : before.facts) {
        if (still_applies(fact) && !later.facts.contains({fact.kind, fact.path}) &&
            !later.is_absent(fact.path)) {
          added.insert(fact.path);
          run.facts.push_back(fact);
        }
      }
      if (repeats || reads) {
        for (Output& output : kept) {
          inherited.insert(output.path);
          run.outputs.push_back(std::move(output));
        }
      }
    }
    later.add(before);
  }
  // An object file that an earlier run left and a later one linked stays inside the stage.
  std::erase_if(run.inputs,
                [&](const store::Input& input) { return inherited.contains(input.path); });
  // The current run read these itself, whichever run left them, so they are not inherited.
  for (const std::string& path : inherited) {
    if (!own_inputs.contains(path)) added.insert(path);
  }
  return added;
}

}  // namespace assay::lineage
