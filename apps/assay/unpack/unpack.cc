// assay unpack FILE [--directory DIR]: a pack becomes a project; nothing is run.
#include "lineage/pack/unpack.h"

#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_view.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

struct UnpackOptions {
  std::string file;
  std::string directory;
};

// model.tar.zst -> model
std::string folder_of(const std::string& file) {
  std::string name = std::filesystem::path(file).filename().string();
  for (const std::string_view suffix : {".zst", ".tar"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      name.resize(name.size() - suffix.size());
    }
  }
  return name == std::filesystem::path(file).filename() ? name + "-unpacked" : name;
}

Result<ExitCode> unpack(const Session& session, const UnpackOptions& options) {
  ASSAY_TRY(const std::filesystem::path here, working_directory());
  const std::string folder =
      options.directory.empty() ? folder_of(options.file) : options.directory;
  ASSAY_TRY(const lineage::UnpackReport report,
            lineage::unpack(here / options.file, here / folder));

  base::Json runs = base::Json::array();
  base::Table table({"run", "command"});
  for (const store::RunRecord& run : report.manifest.runs) {
    runs.push_back({{"run", run.id}, {"command", lineage::recorded_command_text(run)}});
    table.row({fmt::format("{}", run.id), cell_text(lineage::command_text(run), 80)});
  }
  base::Json left_out = base::Json::array();
  for (const lineage::LeftOutFile& one : report.manifest.left_out) {
    left_out.push_back({{"path", one.path}, {"why", one.why}});
  }
  const std::string& artifact = report.manifest.artifact_path;
  session.print_json({{"directory", (here / folder).string()},
                      {"artifact", base::or_null(artifact)},
                      {"runs", std::move(runs)},
                      {"placed", report.placed},
                      {"older", report.older},
                      {"left_out", std::move(left_out)}});
  session.print(table);
  session.print(
      fmt::format("{}: {} in place, nothing was run\n", base::printable(folder),
                  base::counted(static_cast<std::int64_t>(report.placed.size()), "file")));
  for (const std::string& path : report.older) {
    session.print(fmt::format(
        "{}: runs read several versions; the last one is in place, the others are in the archive\n",
        base::printable(lineage::shown_path(path, here))));
  }
  for (const lineage::LeftOutFile& one : report.manifest.left_out) {
    session.print(fmt::format("not in the pack: {}: {}\n", base::printable(one.path),
                              base::printable(one.why)));
  }
  session.next(fmt::format(
      "cd {} && assay {}", base::shell_quoted(folder),
      artifact.empty()
          ? "refresh"
          : fmt::format("reproduce {} --run",
                        base::shell_quoted(lineage::shown_path(
                            artifact, std::filesystem::weakly_canonical(here / folder))))));
  return ExitCode::kYes;
}

}  // namespace

Verb unpack_verb(const Session& session) {
  const auto options = std::make_shared<UnpackOptions>();
  return {.name = "unpack",
          .description = "make a project from a pack, to reproduce its results",
          .examples = {"assay unpack model.tar.zst --directory elsewhere"},
          .arguments = {{"FILE", "a file written by `assay pack`", &options->file, true, {}, true}},
          .options = {{"--directory",
                       "the new folder; default: the file's name",
                       &options->directory,
                       {},
                       "DIR",
                       true}},
          .action = [&session, options] { return unpack(session, *options); }};
}

}  // namespace assay::cli
