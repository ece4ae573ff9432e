// assay label: names a run or a content, removes names, or lists them.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/text.h"
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

// What a label names, in words: "run 3: python train.py", "model.bin (d4d4d19b), left by run 2".
base::Result<std::string> target_text(store::Store& store, const std::filesystem::path& directory,
                                      const store::Labelled& target) {
  constexpr std::size_t kCommandColumns = 60;
  constexpr std::size_t kDigits = 8;
  if (const store::RunId* id = std::get_if<store::RunId>(&target)) {
    const auto run = store::head_of(store, *id);
    if (!run) return fmt::format("run {}", *id);
    return fmt::format(
        "run {}: {}", *id,
        base::shortened(base::printable(lineage::command_text(*run)), kCommandColumns));
  }
  const auto& content = std::get<hash::Digest>(target);
  const std::string digits = content.hex().substr(0, kDigits);
  ASSAY_TRY(const auto made, store::producers_of(store, content, 1));
  ASSAY_TRY(const auto read, store::consumers_of(store, content, 1));
  if (made.empty() && read.empty()) return digits;
  const store::FileAt& file = made.empty() ? read.front() : made.front();
  return fmt::format("{} ({}), {} by run {}",
                     base::printable(lineage::shown_path(file.path, directory)), digits,
                     made.empty() ? "read" : "left", file.run);
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
    session.next(fmt::format("assay {} {}", run ? "show" : "lineage", labels.front().name));
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

base::Result<store::Labelled> target_of(store::Store& store, const std::string& what) {
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::RunOrArtifact named, lineage::resolve_name(store, what, directory));
  if (const store::RunId* id = std::get_if<store::RunId>(&named)) return *id;
  const auto& artifact = std::get<lineage::Artifact>(named);
  if (!artifact.blake3) {
    return base::fail(base::usage_error(fmt::format("'{}'", what), "has no content to label",
                                        artifact.is_folder
                                            ? "it is a folder: label one of its files, or the run"
                                            : "the last run that changed it deleted it"));
  }
  return *artifact.blake3;
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
  ASSAY_TRY(const store::Labelled target, target_of(store, options.what));
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  base::Json list = base::Json::array();
  for (const std::string& name : options.names) {
    ASSAY_TRY(const auto before, store::set_label(store, name, target));
    const bool moved = before && *before != target;
    ASSAY_TRY(const std::string now, target_text(store, directory, target));
    std::string earlier;
    if (moved) {
      ASSAY_TRY(earlier, target_text(store, directory, *before));
    }
    session.print(fmt::format("{} names {}{}\n", name, now, moved ? ", no longer " + earlier : ""));
    list.push_back(label_json(name, target));
  }
  session.print_json(base::Json{{"labels", std::move(list)}});
  session.next(std::holds_alternative<store::RunId>(target)
                   ? fmt::format("assay show {}", options.names.front())
                   : fmt::format("assay lineage {}", options.names.front()));
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
