#include "lineage/graph/dag_query.h"

#include <algorithm>
#include <map>
#include <set>

#include "lineage/graph/merged_runs.h"
#include "store/artifacts.h"
#include "store/path_facts.h"
#include "store/run_dependencies.h"
#include "store/run_reader.h"
#include "store/stages.h"

namespace assay::lineage {
Dag live_dag(const LiveStages& stages) {
  DagBuilder builder;
  for (const store::RunRecord& run : stages.runs()) builder.add_run(run);
  for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
    const store::RunRecord& run = stages.runs()[stage];
    for (const store::Output& output : run.outputs) builder.add_output(stage, output);
  }
  for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
    for (const store::Input& input : stages.needs(stage)) {
      const auto source = stages.source(stage, input);
      if (!source) {
        const auto same = stages.same_content(stage, input);
        builder.add_external_input(
            stage, input,
            same ? std::optional(SameContent{stages.runs()[same->stage].id, same->output->path})
                 : std::nullopt);
        continue;
      }
      const bool stale =
          input.blake3 && source->output->blake3 && *input.blake3 != *source->output->blake3;
      builder.add_input(stage, {.file = builder.add_output(source->stage, *source->output),
                                .stale = stale,
                                .written_into = input.size < 0});
    }
  }
  return builder.take();
}

base::Result<LiveStages> load_live_stages(store::Store& store) {
  ASSAY_TRY(const store::ReadTransaction snapshot, store::ReadTransaction::begin(store.database()));
  ASSAY_TRY(std::vector<store::RunRecord> runs, store::live_runs(store));
  std::vector<std::unordered_set<std::string>> inherited;
  for (store::RunRecord& run : runs) {
    ASSAY_TRY_VOID(store::each_input(
        store, run.id, -1, [&](store::Input input) { run.inputs.push_back(std::move(input)); }));
    ASSAY_TRY_VOID(store::each_output(store, run.id, -1, [&](store::Output output) {
      run.outputs.push_back(std::move(output));
    }));
    ASSAY_TRY(run.facts, store::path_facts(store, run.id));
    if (!run.complete) {
      ASSAY_TRY(run.missed, store::missed_of(store, run.id));
    }
    ASSAY_TRY(auto added, merge_earlier_runs(store, run));
    inherited.push_back(std::move(added));
  }
  return LiveStages(std::move(runs), std::move(inherited));
}

namespace {

using store::FileAt;
using store::Input;
using store::Output;
using store::RunId;
using store::RunRecord;

// Walks from run to run. Each run's inputs and outputs are followed at most once, so it terminates
// on cycles.
class Walk {
 public:
  static base::Result<Walk> start(store::Store& store) {
    ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
    return Walk(store, std::move(producers));
  }

  base::Result<std::size_t> run(RunId id) {
    if (const auto known = builder_.find_run(id)) return *known;
    ASSAY_TRY(const RunRecord head, store::head_of(*store_, id));
    return builder_.add_run(head);
  }

  // Adds an output and its run.
  base::Result<std::size_t> output(const FileAt& made) {
    ASSAY_TRY(const std::size_t index, run(made.run));
    return builder_.add_output(
        index, {made.path, made.blake3, made.size, store::OutputStatus::kCreated, ""});
  }

  base::Result<void> up(std::vector<RunId> from, std::int64_t depth) {
    std::set<RunId> done(from.begin(), from.end());
    for (std::int64_t level = 0; !from.empty() && (depth < 0 || level < depth); ++level) {
      std::vector<RunId> next;
      for (const RunId id : from) {
        ASSAY_TRY_VOID(add_inputs(id));
        for (const DagInput& input : builder_.dag().runs[*builder_.find_run(id)].inputs) {
          const auto& file = builder_.dag().files[input.file];
          if (!file.producer) continue;
          const RunId producer = builder_.dag().runs[*file.producer].run.id;
          if (done.insert(producer).second) next.push_back(producer);
        }
      }
      from = std::move(next);
    }
    return {};
  }

  // `only`: for the first runs, only the readers of this file are followed.
  base::Result<void> down(std::vector<RunId> from, const std::optional<std::string>& only,
                          std::int64_t depth) {
    std::set<RunId> done(from.begin(), from.end());
    for (std::int64_t level = 0; !from.empty() && (depth < 0 || level < depth); ++level) {
      std::vector<RunId> next;
      for (const RunId id : from) {
        ASSAY_TRY(const auto readers, add_outputs(id, level == 0 ? only : std::nullopt));
        for (const RunId reader : readers) {
          if (done.insert(reader).second) next.push_back(reader);
        }
      }
      from = std::move(next);
    }
    // The outputs of the last runs are included, their readers are not.
    for (const RunId id : from) ASSAY_TRY_VOID(outputs_of(id));
    return {};
  }

  // Readers of a file that no run made.
  base::Result<std::vector<RunId>> readers_of_external(std::size_t file) {
    const DagFile outside = builder_.dag().files[file];
    std::vector<RunId> readers;
    if (!outside.blake3) return readers;
    ASSAY_TRY(const auto all, store::consumers_of(*store_, *outside.blake3));
    for (const FileAt& read : all) {
      if (read.path != outside.path) continue;
      ASSAY_TRY(const std::size_t reader, run(read.run));
      ASSAY_TRY(const auto made, producers_.of(builder_.dag().runs[reader].run,
                                               {read.path, read.blake3, read.size}));
      if (made) continue;
      builder_.add_input(reader, {.file = file});
      readers.push_back(read.run);
    }
    return readers;
  }

  base::Result<void> outputs_of(RunId id) {
    ASSAY_TRY(const std::size_t index, run(id));
    return store::each_output(*store_, id, -1,
                              [&](const Output& output) { builder_.add_output(index, output); });
  }

  base::Result<void> add_inputs(RunId id) {
    ASSAY_TRY(const std::size_t reader, run(id));
    const RunRecord head = builder_.dag().runs[reader].run;
    ASSAY_TRY(const std::vector<Input> needs, store::load_dependencies(*store_, id, artifact_));
    for (const Input& input : needs) {
      ASSAY_TRY(const auto made, producers_.of(head, input));
      if (!made) {
        ASSAY_TRY(const auto same, producers_.same_content(head, input));
        builder_.add_external_input(
            reader, input, same ? std::optional(SameContent{same->run, same->path}) : std::nullopt);
        continue;
      }
      ASSAY_TRY(const std::size_t file, output(*made));
      builder_.add_input(reader, {.file = file, .written_into = input.size < 0});
    }
    return {};
  }

  // Adds the readers of these outputs of `id` as readers of `file`.
  base::Result<void> add_readers(RunId id, const std::vector<FileAt>& outputs, std::size_t file,
                                 std::vector<RunId>& found) {
    ASSAY_TRY(const std::size_t writer, run(id));
    const RunRecord head = builder_.dag().runs[writer].run;
    for (const FileAt& output : outputs) {
      ASSAY_TRY(const auto readers,
                producers_.readers(head, {output.path, output.blake3, output.size}));
      for (const FileAt& read : readers) {
        ASSAY_TRY(const std::size_t reader, run(read.run));
        builder_.add_input(reader, {.file = file});
        if (std::find(found.begin(), found.end(), read.run) == found.end()) {
          found.push_back(read.run);
        }
      }
    }
    return {};
  }

  DagBuilder& builder() { return builder_; }
  // The file that is asked about: if it is a log, its earlier contents count.
  void ask_about(std::string path) { artifact_ = std::move(path); }

 private:
  Walk(store::Store& store, store::Producers producers)
      : store_(&store), producers_(std::move(producers)) {}

  // Returns the runs that read its outputs.
  base::Result<std::vector<RunId>> add_outputs(RunId id, const std::optional<std::string>& only) {
    ASSAY_TRY(const std::size_t writer, run(id));
    const RunRecord head = builder_.dag().runs[writer].run;
    std::vector<Output> outputs;
    ASSAY_TRY_VOID(store::each_output(*store_, id, -1, [&](Output output) {
      if (!only || output.path == *only) outputs.push_back(std::move(output));
    }));
    std::vector<RunId> found;
    for (const Output& output : outputs) {
      const std::size_t file = builder_.add_output(writer, output);
      ASSAY_TRY(const auto readers, producers_.readers(head, output));
      for (const FileAt& read : readers) {
        ASSAY_TRY(const std::size_t reader, run(read.run));
        builder_.add_input(reader, {.file = file, .written_into = read.size < 0});
        found.push_back(read.run);
      }
    }
    return found;
  }

  store::Store* store_;
  store::Producers producers_;
  DagBuilder builder_;
  std::string artifact_;
};

// The runs that left this artifact at its path, newest first.
base::Result<std::vector<FileAt>> makers_of(store::Store& store, const Artifact& artifact) {
  if (!artifact.blake3) return std::vector<FileAt>{};
  ASSAY_TRY(auto makers, store::producers_of(store, *artifact.blake3));
  std::erase_if(makers, [&](const FileAt& made) { return made.path != artifact.path; });
  return makers;
}

// The run that left the content of an external file elsewhere, before the last run that read it
// here.
base::Result<std::optional<SameContent>> same_content_of(store::Store& store,
                                                         const Artifact& artifact) {
  if (!artifact.blake3) return std::nullopt;
  ASSAY_TRY(const auto readers, store::consumers_of(store, *artifact.blake3));
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  for (const FileAt& read : readers) {
    if (read.path != artifact.path) continue;
    ASSAY_TRY(const RunRecord head, store::head_of(store, read.run));
    ASSAY_TRY(const auto found, producers.same_content(head, {read.path, read.blake3, read.size}));
    return found ? std::optional(SameContent{found->run, found->path}) : std::nullopt;
  }
  return std::nullopt;
}

base::Result<Dag> around_run(Walk walk, RunId id, const Reach& reach) {
  ASSAY_TRY(const std::size_t index, walk.run(id));
  ASSAY_TRY_VOID(walk.outputs_of(id));
  ASSAY_TRY_VOID(walk.add_inputs(id));
  if (reach.up) ASSAY_TRY_VOID(walk.up({id}, reach.depth));
  if (reach.down) ASSAY_TRY_VOID(walk.down({id}, std::nullopt, reach.depth));
  Dag dag = walk.builder().take();
  dag.run = index;
  return dag;
}

// Follows the producers of the newest run that made it, and the readers of all runs that made it.
base::Result<std::size_t> around_makers(Walk& walk, const std::vector<FileAt>& makers,
                                        const Reach& reach) {
  ASSAY_TRY(const std::size_t file, walk.output(makers.front()));
  std::vector<RunId> all;
  for (const FileAt& made : makers) all.push_back(made.run);
  if (reach.up && reach.down) {
    ASSAY_TRY_VOID(walk.up(all, reach.depth));
  } else if (reach.up) {
    ASSAY_TRY_VOID(walk.up({makers.front().run}, reach.depth));
  }
  if (reach.down) ASSAY_TRY_VOID(walk.down(all, makers.front().path, reach.depth));
  return file;
}

base::Result<std::size_t> around_external(Walk& walk, store::Store& store, const Artifact& artifact,
                                          const Reach& reach) {
  const std::size_t file =
      walk.builder().external_file(artifact.path, artifact.blake3, artifact.size);
  ASSAY_TRY(const auto same, same_content_of(store, artifact));
  walk.builder().add_same_content(file, same);
  if (reach.down && reach.depth != 0) {
    ASSAY_TRY(const auto readers, walk.readers_of_external(file));
    ASSAY_TRY_VOID(walk.down(readers, std::nullopt, reach.depth < 0 ? -1 : reach.depth - 1));
  }
  return file;
}

// A folder is shown as one file of each run that left files in it.
base::Result<std::size_t> around_folder(Walk& walk, store::Store& store, const Artifact& artifact,
                                        const Reach& reach) {
  ASSAY_TRY(const std::vector<FileAt> files, store::files_below(store, artifact.path));
  std::map<RunId, std::vector<FileAt>> by_run;
  for (const FileAt& file : files) by_run[file.run].push_back(file);
  std::size_t newest = 0;
  std::vector<RunId> makers;
  std::vector<RunId> readers;
  for (const auto& [run, left] : by_run) {
    std::int64_t size = 0;
    for (const FileAt& file : left) size += file.size;
    ASSAY_TRY(const std::size_t index, walk.run(run));
    newest = walk.builder().add_folder(index, artifact.path, size, std::ssize(left));
    makers.push_back(run);
    if (!reach.down || reach.depth == 0) continue;
    ASSAY_TRY_VOID(walk.add_readers(run, left, newest, readers));
  }
  if (reach.up) ASSAY_TRY_VOID(walk.up(makers, reach.depth));
  if (reach.down && reach.depth != 0) {
    ASSAY_TRY_VOID(walk.down(readers, std::nullopt, reach.depth < 0 ? -1 : reach.depth - 1));
  }
  return newest;
}

base::Result<Dag> around_artifact(Walk walk, store::Store& store, const Artifact& artifact,
                                  const Reach& reach) {
  if (artifact.is_folder) {
    ASSAY_TRY(const std::size_t folder, around_folder(walk, store, artifact, reach));
    Dag dag = walk.builder().take();
    dag.file = folder;
    return dag;
  }
  walk.ask_about(artifact.path);
  ASSAY_TRY(const auto makers, makers_of(store, artifact));
  ASSAY_TRY(const std::size_t file, makers.empty() ? around_external(walk, store, artifact, reach)
                                                   : around_makers(walk, makers, reach));
  Dag dag = walk.builder().take();
  dag.file = file;
  return dag;
}

}  // namespace

base::Result<Dag> whole_dag(store::Store& store) {
  ASSAY_TRY(const store::ReadTransaction snapshot, store::ReadTransaction::begin(store.database()));
  ASSAY_TRY(Walk walk, Walk::start(store));
  ASSAY_TRY(std::vector<RunRecord> runs, store::list_runs(store));
  std::reverse(runs.begin(), runs.end());
  for (const RunRecord& run : runs) walk.builder().add_run(run);
  for (const RunRecord& run : runs) ASSAY_TRY_VOID(walk.outputs_of(run.id));
  for (const RunRecord& run : runs) ASSAY_TRY_VOID(walk.add_inputs(run.id));
  return walk.builder().take();
}

base::Result<Dag> dag_around(store::Store& store, const RunOrArtifact& what, const Reach& reach) {
  ASSAY_TRY(const store::ReadTransaction snapshot, store::ReadTransaction::begin(store.database()));
  ASSAY_TRY(Walk walk, Walk::start(store));
  if (const RunId* id = std::get_if<RunId>(&what)) return around_run(std::move(walk), *id, reach);
  return around_artifact(std::move(walk), store, std::get<Artifact>(what), reach);
}

}  // namespace assay::lineage
