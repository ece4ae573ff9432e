// LiveStages: the current run of each stage of a project, and which stage feeds which. Edges are by
// path: not the contents that a run read (dag_query.h follows those) but what it would read if it
// ran now. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class LiveStages {
 public:
  // Runs with their inputs and outputs, one per stage, in the order of the stages' numbers.
  // `inherited`: for each run, the paths that were added from earlier runs of its stage
  // (merged_runs.h); empty: none for any run.
  explicit LiveStages(std::vector<store::RunRecord> runs,
                      std::vector<std::unordered_set<std::string>> inherited = {});
  LiveStages(LiveStages&&) = default;
  LiveStages& operator=(LiveStages&&) = default;
  LiveStages(const LiveStages&) = delete;
  LiveStages& operator=(const LiveStages&) = delete;
  ~LiveStages() = default;

  [[nodiscard]] const std::vector<store::RunRecord>& runs() const { return runs_; }

  // When the stage's current run began, by the file system's clock.
  [[nodiscard]] std::int64_t began_file_ns(std::size_t stage) const { return began_[stage]; }

  // What the stage reads or modifies (store/run_dependencies.h).
  [[nodiscard]] const std::vector<store::Input>& needs(std::size_t stage) const {
    return needs_[stage];
  }

  // Whether the stage writes, deletes or renames the file at `path`.
  [[nodiscard]] bool changes(std::size_t stage, std::string_view path) const;
  // Whether any stage writes a file somewhere below this folder.
  [[nodiscard]] bool is_written_below(std::string_view folder) const;
  // Which files the stage reads in a folder: their extensions (".csv"; "" for none), and whether it
  // reads any in subfolders.
  struct FolderReads {
    std::set<std::string_view> kinds;
    bool below = false;
  };
  [[nodiscard]] const FolderReads& reads_in(std::size_t stage, std::string_view folder) const;
  // Whether only earlier runs of the stage, not its current one, read or wrote the path.
  [[nodiscard]] bool is_inherited(std::size_t stage, const std::string& path) const;
  [[nodiscard]] bool reads(std::size_t stage, std::string_view path) const;
  // Whether the file was handed down to the stage as a stream (store/streams.h): the program that
  // started it may have written to it after the stage.
  [[nodiscard]] bool is_handed_down(std::size_t stage, const std::string& path) const;

  // The output that an input comes from: that of the stage that ran last among the other stages
  // that write this path. A later stage that changes the file in place (it also reads it) is not
  // the source for an earlier stage; and if this stage changes the file itself, no later stage is
  // its source.
  struct Source {
    std::size_t stage = 0;
    const store::Output* output = nullptr;
  };
  [[nodiscard]] std::optional<Source> source(std::size_t stage, const store::Input& input) const;

  // The stage, among those with lower numbers, that ran last of those that make the file at the
  // path without reading it: what this stage, and others before it, then change in place.
  [[nodiscard]] std::optional<std::size_t> maker(std::size_t stage, std::string_view path) const;

  // The stage that ran last of those that ran after this one and made the file at the path without
  // reading it.
  [[nodiscard]] std::optional<std::size_t> replacer(std::size_t stage, std::string_view path) const;

  // The last stage before this one that left the same non-empty content at another path: not a
  // source, but worth a remark.
  [[nodiscard]] std::optional<Source> same_content(std::size_t stage,
                                                   const store::Input& input) const;

  // The next stage, by number, that leaves a file at the path, too, and that `counts`. If this
  // stage writes it again, that one has to follow, as when all stages ran in order.
  [[nodiscard]] std::optional<std::size_t> next_writer(
      std::size_t stage, std::string_view path,
      const std::function<bool(std::size_t later)>& counts) const;

  // The stage that changed this path last: the file on disk is its output.
  [[nodiscard]] std::optional<std::size_t> owner(std::string_view path) const;
  // Whether this stage's change of the path is to remove it, or to move it away.
  [[nodiscard]] bool is_removed_by(std::size_t stage, std::string_view path) const;
  // Whether a stage with a lower number removes the path.
  [[nodiscard]] bool is_removed_before(std::size_t stage, std::string_view path) const;
  // Whether a stage with a higher number has changed the file in place, or removed it, and one with
  // a lower number makes it: then this stage would see it as it saw it if all ran in order.
  [[nodiscard]] bool is_made_again(std::size_t stage, std::string_view path) const;
  [[nodiscard]] bool makes_link(std::size_t stage, std::string_view path) const;
  // Whether the stage makes this folder, or files below it.
  [[nodiscard]] bool makes_folder(std::size_t stage, std::string_view folder) const;
  // The stages with lower numbers that make names in folders that this one lists, or files that it
  // asks about without reading them; each with such a path.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::string_view>> lookup_sources(
      std::size_t stage) const;
  // What owner() left there; null: it removed the file, or no stage changed it.
  [[nodiscard]] const store::Output* left_at(std::string_view path) const;

 private:
  struct PathChange {
    std::size_t stage = 0;
    const store::Output* output = nullptr;  // none: deleted or renamed away
  };
  // Of the stages that make the file at the path without reading it, and that count, the one that
  // ran last.
  [[nodiscard]] std::optional<std::size_t> last_maker(
      std::string_view path, const std::function<bool(std::size_t stage)>& counts) const;

  std::vector<store::RunRecord> runs_;
  std::vector<std::vector<store::Input>> needs_;
  std::vector<std::set<std::string>> handed_down_;
  std::vector<std::int64_t> began_;
  std::vector<std::unordered_set<std::string>> inherited_;
  struct DigestHash {
    std::size_t operator()(const hash::Digest& digest) const;
  };
  void note_read(std::size_t stage, std::string_view path);
  void note_written(std::string_view path);

  // The keys are in runs_ and needs_.
  std::unordered_map<std::string_view, std::vector<PathChange>> path_changes_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_;
  std::vector<std::unordered_map<std::string_view, FolderReads>> reads_in_;
  std::unordered_set<std::string_view> written_below_;  // folders
  // By folder, which stages make names in it.
  std::unordered_map<std::string_view, std::set<std::size_t>> makers_in_;
  std::unordered_map<hash::Digest, std::vector<Source>, DigestHash> contents_;
};

// ".csv" of "a.csv"; nothing of "a" and ".a".
std::string_view extension_of(std::string_view name);

}  // namespace assay::lineage
