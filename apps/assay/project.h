// The working directory and the store of its project, for verbs.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "lineage/graph/dag_text.h"
#include "lineage/graph/file_state.h"
#include "lineage/graph/resolve.h"
#include "store/store.h"

namespace assay::cli {

base::Result<std::filesystem::path> working_directory();

// The store at or above the working directory; the error says how to create one.
base::Result<store::Store> open_store();

// Long commands are cut on a terminal, and whole in a pipe or file.
lineage::Commands shown_commands(bool on_stdout = true);

// For an artifact that was named by its path: what is there now, as a line of text. If a run left
// or read that content, the artifact is changed to it.
struct DescribedFile {
  lineage::FileState state;
  std::string text;  // empty: it was named otherwise
};
base::Result<DescribedFile> describe_file(store::Store& store, lineage::Artifact& artifact);

// Where a verb keeps its results: the given folder, or a new one in the project, or else in the
// folder for temporary files. It is not created.
base::Result<std::filesystem::path> results_folder(const std::string& verb,
                                                   const std::string& requested);

}  // namespace assay::cli
