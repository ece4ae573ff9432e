// assay restore NAME [-o PATH]: puts an archived content, or all that a run left, back.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/archive/archive_names.h"
#include "lineage/graph/dag_view.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

struct RestoreOptions {
  std::string name;
  std::string output;
  bool force = false;
};

std::string_view how_text(lineage::Archive::Restored how) {
  switch (how) {
    case lineage::Archive::Restored::kMade:
      return "made";
    case lineage::Archive::Restored::kReplaced:
      return "replaced";
    case lineage::Archive::Restored::kAlreadyThere:
      return "was there";
  }
  return {};
}

// A single content goes to the given path, or into it if it is a folder; the files of a run go
// below it.
void choose_place(const lineage::RunOrArtifact& what, const std::filesystem::path& given,
                  std::vector<lineage::RecordedContent>& contents,
                  lineage::RestoreRequest& request) {
  if (given.empty()) return;
  if (std::holds_alternative<store::RunId>(what)) {
    request.root = given;
    return;
  }
  std::error_code error;
  const bool folder = std::filesystem::is_directory(given, error);
  contents.front().path =
      folder ? given / std::filesystem::path(contents.front().path).filename() : given;
}

Result<ExitCode> restore(const Session& session, const RestoreOptions& given) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::RunOrArtifact what, lineage::resolve_name(store, given.name, directory));
  ASSAY_TRY(std::vector<lineage::RecordedContent> contents,
            lineage::contents_of(store, what, false));
  if (contents.empty()) {
    return base::fail(
        base::usage_error(fmt::format("restore '{}'", base::shortened(given.name, 200)),
                          "has no recorded content to restore"));
  }
  lineage::RestoreRequest request;
  if (given.force) request.existing = lineage::Archive::Existing::kReplace;
  choose_place(what, given.output.empty() ? std::filesystem::path() : directory / given.output,
               contents, request);
  ASSAY_TRY(const auto restored, lineage::restore_contents(store, contents, request));

  base::Json list = base::Json::array();
  base::Table table({"content", "size", "file", "path"});
  for (const lineage::RestoredContent& one : restored) {
    list.push_back({{"path", one.path.string()},
                    {"blake3", one.content.blake3.hex()},
                    {"size", one.content.size},
                    {"how", how_text(one.how)}});
    table.row({one.content.blake3.hex().substr(0, 12), base::to_text(base::Bytes(one.content.size)),
               std::string(how_text(one.how)),
               base::printable(lineage::shown_path(one.path.string(), directory))});
  }
  session.print_json({{"restored", std::move(list)}});
  session.print(table);
  session.next("assay status");
  return ExitCode::kYes;
}

}  // namespace

Verb restore_verb(const Session& session) {
  const auto options = std::make_shared<RestoreOptions>();
  return {
      .name = "restore",
      .description = "restore an archived file, or all outputs of a run",
      .examples = {"assay restore model.bin", "assay restore @2 -o restored"},
      .arguments = {{"NAME", "a hash, a label, a path or a run", &options->name, true, {}, true}},
      .options =
          {{"-o,--output",
            "where to restore it: a file, or for a run a folder to use instead of the project's",
            &options->output,
            {},
            "PATH",
            true},
           {"--force", "overwrite files whose content differs", &options->force}},
      .action = [&session, options] { return restore(session, *options); }};
}

}  // namespace assay::cli
