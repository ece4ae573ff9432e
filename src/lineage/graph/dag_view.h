// A Dag for display: files with the same producer and consumers are one bundle, paths are relative
// to a directory. dag_text and dag_picture show this.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lineage/graph/dag.h"

namespace assay::lineage {

// Relative when the path lies in `directory`, else as it is. Not made printable.
std::string shown_path(const std::string& path, const std::filesystem::path& directory);

// "python train.py --lr 0.1", quoted for a shell; not made printable. Training is shown as the user
// typed it, "assay train demo", not with the path of the trainer.
std::string command_text(const store::RunRecord& run);
// The recorded command, which is what a repetition runs: for JSON and comparisons.
std::string recorded_command_text(const store::RunRecord& run);
// "@3" for a live stage, else "run 12".
std::string short_name(const store::RunRecord& run);

struct Bundle {
  std::vector<std::size_t> files;  // never empty
  std::optional<std::size_t> producer;
  std::vector<std::size_t> consumers;
  // For each consumer: it read an older content; it modified the file without reading it.
  std::vector<bool> stale, written_into;
};

struct DagView {
  const Dag* dag = nullptr;
  std::filesystem::path directory;
  std::vector<Bundle> bundles;
  std::vector<std::size_t> order;  // of the runs: producers first, except in cycles

  // "train.bin, valid.bin and 12 more": at most `names` names. Printable.
  [[nodiscard]] std::string label(const Bundle& bundle, std::size_t names) const;
  // "3f2a9c01 · 1.20 MiB", or the sum of the sizes. Printable.
  [[nodiscard]] std::string detail(const Bundle& bundle) const;
  // "same content as out/model.bin of run 3", or nothing. Printable.
  [[nodiscard]] std::string remark(const Bundle& bundle) const;
};

// Whether the file is the subject of the Dag: several runs may have left the same content at the
// same path.
bool is_subject(const Dag& dag, std::size_t file);

// The Dag must outlive it.
DagView view_of(const Dag& dag, const std::filesystem::path& directory);

}  // namespace assay::lineage
