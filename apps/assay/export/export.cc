// assay export [WHAT] --format F [-o FILE]: a run, or an artifact and what it came from, in a
// format that other tools read.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "lineage/export/export.h"
#include "lineage/graph/resolve.h"
#include "lineage/graph/upstream.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

struct ExportOptions {
  std::string what = "last";
  std::string format;
  std::string file;
};

// A run alone, or an artifact with every run it came from.
Result<lineage::ExportSubject> subject_of(store::Store& store, const std::string& what,
                                          lineage::ExportFormat format) {
  lineage::ExportSubject subject{.runs = {},
                                 .project_root = store.location().project.string(),
                                 .project_id = store.project().id};
  ASSAY_TRY(const std::filesystem::path here, working_directory());
  ASSAY_TRY(const lineage::RunOrArtifact named, lineage::resolve_name(store, what, here));
  if (const auto* run = std::get_if<store::RunId>(&named)) {
    ASSAY_TRY(store::RunRecord loaded, store::load_run(store, *run));
    subject.runs.push_back(std::move(loaded));
    return subject;
  }
  auto artifact = std::get<lineage::Artifact>(named);
  ASSAY_TRY(const DescribedFile described, describe_file(store, artifact));
  if (described.state.kind == lineage::FileState::Kind::kChanged ||
      described.state.kind == lineage::FileState::Kind::kGone) {
    base::write_stderr(fmt::format("assay: {}: {}; exporting the version that run {} left\n",
                                   base::printable(what), described.text, described.state.run));
  }
  ASSAY_TRY(const std::vector<store::RunId> producers, lineage::producers_of(store, artifact));
  ASSAY_TRY(subject.runs, lineage::upstream_of(store, producers, artifact.path));
  if (producers.size() > 1 && format == lineage::ExportFormat::kInToto) {
    base::write_stderr(
        fmt::format("assay: {}: {} runs left files in it, but a statement covers one run: this one "
                    "covers run {}\n",
                    base::printable(what), producers.size(), subject.runs.back().id));
  }
  subject.artifact_path = artifact.path;
  return subject;
}

Result<ExitCode> run_export(const Session& session, const ExportOptions& options) {
  if (options.format.empty()) {
    return base::fail(base::usage_error(
        "export", "--format is missing",
        fmt::format("one of {}", fmt::join(lineage::export_format_names(), ", "))));
  }
  ASSAY_TRY(const lineage::ExportFormat format, lineage::parse_export_format(options.format));
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const lineage::ExportSubject subject, subject_of(store, options.what, format));
  ASSAY_TRY(const std::string text, lineage::export_text(format, subject));
  if (options.file.empty() || options.file == "-") {
    write_stdout(text);
    return ExitCode::kYes;
  }
  ASSAY_TRY_VOID(base::write_output(options.file, text));
  const std::size_t described = lineage::runs_described(format, subject);
  session.print_json(base::Json{{"format", options.format},
                                {"file", options.file},
                                {"runs", described},
                                {"bytes", text.size()}});
  session.print(fmt::format(
      "{}: {} of {} {}{}\n", options.file, options.format, described,
      described == 1 ? "run" : "runs",
      described < subject.runs.size() ? fmt::format(", the last of {}", subject.runs.size()) : ""));
  return ExitCode::kYes;
}

}  // namespace

Verb export_verb(const Session& session) {
  const auto options = std::make_shared<ExportOptions>();
  return {.name = "export",
          .description =
              "write a run or an artifact's lineage as PROV, RO-Crate, in-toto or OpenLineage",
          .examples = {"assay export last --format prov",
                       "assay export model.bin --format in-toto -o statement.json"},
          .arguments = {{"WHAT",
                         "a run, or a file by path or hash; default: last",
                         &options->what,
                         false,
                         {},
                         true}},
          .options = {{"--format", "prov, ro-crate, in-toto or openlineage", &options->format,
                       lineage::export_format_names, "FORMAT"},
                      {"-o,--output",
                       "write to this file instead of standard output",
                       &options->file,
                       {},
                       "FILE",
                       true}},
          .action = [&session, options] { return run_export(session, *options); }};
}

}  // namespace assay::cli
