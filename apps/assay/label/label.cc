// assay label: names a run or a content, removes names, or lists them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/resolve.h"
#include "store/artifacts.h"
#include "store/labels.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

struct LabelOptions {
  std::string what;
  std::vector<std::string> names;
  bool remove = false;
};

// "mid", "mid and 2 other paths"
std::string more_text(std::set<std::string> paths, const std::string& but,
                      const std::filesystem::path& directory) {
  paths.erase(but);
  std::string first = base::printable(lineage::shown_path(*paths.begin(), directory));
  if (paths.size() == 1) return first;
  return fmt::format("{} and {}", first,
                     base::counted(static_cast<std::int64_t>(paths.size()) - 1, "other path"));
}

// What a label names, in words: "run 3: python train.py", "model.bin (d4d4d19b), left by run 2".
// Of a content that is at several paths, `path` is the one to name; empty: the newest, and how many
// others there are.
base::Result<std::string> target_text(store::Store& store, const std::filesystem::path& directory,
                                      const store::Labelled& target, const std::string& path = {}) {
  constexpr std::size_t kDigits = 8;
  if (const store::RunId* id = std::get_if<store::RunId>(&target)) {
    const auto run = store::head_of(store, *id);
    if (!run) return fmt::format("run {}", *id);
    return fmt::format("run {}: {}", *id, cell_text(lineage::command_text(*run)));
  }
  const auto& content = std::get<hash::Digest>(target);
  const std::string digits = content.hex().substr(0, kDigits);
  ASSAY_TRY(const auto made, store::producers_of(store, content));
  ASSAY_TRY(const auto read, store::consumers_of(store, content));
  const auto at_path = [&](const store::FileAt& file) { return file.path == path; };
  const auto left = std::find_if(made.begin(), made.end(), at_path);
  const auto used = std::find_if(read.begin(), read.end(), at_path);
  const bool is_made = left != made.end() || (used == read.end() && !made.empty());
  const auto& files = is_made ? made : read;
  if (files.empty()) return digits;
  const auto named = is_made ? left : used;
  const store::FileAt& file = named == files.end() ? files.front() : *named;
  std::set<std::string> others;
  for (const store::FileAt& one : files) others.insert(one.path);
  const std::string also =
      path.empty() && others.size() > 1
          ? fmt::format(", also at {}", more_text(others, file.path, directory))
          : "";
  return fmt::format("{} ({}), {} by run {}{}",
                     base::printable(lineage::shown_path(file.path, directory)), digits,
                     is_made ? "left" : "read", file.run, also);
}

base::Json label_json(const std::string& name, const store::Labelled& target) {
  if (const store::RunId* id = std::get_if<store::RunId>(&target)) {
    return {{"name", name}, {"run", *id}};
  }
  return {{"name", name}, {"blake3", std::get<hash::Digest>(target).hex()}};
}

base::Result<base::ExitCode> list_labels(const Session& session, store::Store& store) {
  ASSAY_TRY(const auto labels, store::all_labels(store));
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  base::Json list = base::Json::array();
  base::Table table({"label", "names"});
  table.align(1, base::Align::kLeft);
  for (const store::Label& label : labels) {
    list.push_back(label_json(label.name, label.target));
    ASSAY_TRY(const std::string target, target_text(store, directory, label.target));
    table.row({label.name, target});
  }
  session.print_json(base::Json{{"labels", std::move(list)}});
  if (labels.empty()) {
    session.print("no labels\n");
  } else {
    session.print(table);
  }
  if (labels.empty()) {
    session.next("assay label --help");
  } else {
    const bool run = std::holds_alternative<store::RunId>(labels.front().target);
    session.next(fmt::format("assay {} {}", run ? "show" : "lineage",
                             base::path_argument(labels.front().name)));
  }
  return base::ExitCode::kYes;
}

// With --remove all arguments are labels.
base::Result<base::ExitCode> remove_labels(const Session& session, store::Store& store,
                                           const LabelOptions& options) {
  std::vector<std::string> names = {options.what};
  names.insert(names.end(), options.names.begin(), options.names.end());
  base::Json removed = base::Json::array();
  for (const std::string& name : names) {
    ASSAY_TRY(const bool was, store::remove_label(store, name));
    if (!was) {
      return base::fail(base::usage_error("label", fmt::format("there is no label '{}'", name),
                                          "`assay label` lists them"));
    }
    removed.push_back(name);
  }
  session.print_json(base::Json{{"removed", removed}});
  session.print(fmt::format("removed {}\n", fmt::join(names, ", ")));
  return base::ExitCode::kYes;
}

struct NamedTarget {
  store::Labelled target;
  std::string path;  // if a file was named
};

base::Result<NamedTarget> target_of(store::Store& store, const std::string& what) {
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::RunOrArtifact named, lineage::resolve_name(store, what, directory));
  if (const store::RunId* id = std::get_if<store::RunId>(&named)) return NamedTarget{*id, ""};
  const auto& artifact = std::get<lineage::Artifact>(named);
  if (!artifact.blake3) {
    return base::fail(base::usage_error(fmt::format("'{}'", what), "has no content to label",
                                        artifact.is_folder
                                            ? "it is a folder: label one of its files, or the run"
                                            : "the last run that changed it deleted it"));
  }
  return NamedTarget{*artifact.blake3, artifact.by_path ? artifact.path : ""};
}

base::Result<base::ExitCode> label(const Session& session, const LabelOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  if (options.what.empty() && options.names.empty() && !options.remove) {
    return list_labels(session, store);
  }
  if (options.remove) return remove_labels(session, store, options);
  if (options.names.empty()) {
    return base::fail(
        base::usage_error("label", "no label given",
                          fmt::format("assay label {} NAME", base::shell_quoted(options.what))));
  }
  for (const std::string& name : options.names) ASSAY_TRY_VOID(store::check_label(name));
  ASSAY_TRY(const NamedTarget named, target_of(store, options.what));
  const store::Labelled& target = named.target;
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  base::Json list = base::Json::array();
  for (const std::string& name : options.names) {
    ASSAY_TRY(const auto before, store::set_label(store, name, target));
    const bool moved = before && *before != target;
    ASSAY_TRY(const std::string now, target_text(store, directory, target, named.path));
    std::string earlier;
    if (moved) {
      ASSAY_TRY(earlier, target_text(store, directory, *before));
    }
    session.print(fmt::format("{} names {}{}\n", name, now, moved ? ", no longer " + earlier : ""));
    list.push_back(label_json(name, target));
  }
  session.print_json(base::Json{{"labels", std::move(list)}});
  session.next(std::holds_alternative<store::RunId>(target)
                   ? fmt::format("assay show {}", base::path_argument(options.names.front()))
                   : fmt::format("assay lineage {}", base::path_argument(options.names.front())));
  return base::ExitCode::kYes;
}

}  // namespace

Verb label_verb(const Session& session) {
  const auto given = std::make_shared<LabelOptions>();
  return {.name = "label",
          .description = "name a run or a file's content; without arguments, list the labels",
          .examples = {"assay label last baseline", "assay label model.bin release-1",
                       "assay label", "assay label --remove baseline"},
          .arguments = {{"WHAT", "a run, path or hash", &given->what, false, {}, true},
                        {.name = "NAME",
                         .help = "one or more labels; an existing label moves",
                         .values = &given->names}},
          .options = {{"--remove", "remove labels: assay label --remove NAME…", &given->remove}},
          .action = [&session, given] { return label(session, *given); }};
}

}  // namespace assay::cli
