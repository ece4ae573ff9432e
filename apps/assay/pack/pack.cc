// assay pack NAME [-o FILE]: what it takes to make an artifact, or what a run left, elsewhere.
#include "lineage/pack/pack.h"

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

struct PackOptions {
  std::string name;
  std::string output;
  bool force = false;
};

Result<ExitCode> pack(const Session& session, const PackOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const lineage::RunOrArtifact what,
            lineage::resolve_name(store, options.name, directory));
  std::string output = options.output;
  if (output.empty()) {
    const auto* artifact = std::get_if<lineage::Artifact>(&what);
    const std::string stem = artifact != nullptr
                                 ? std::filesystem::path(artifact->path).filename().string()
                                 : fmt::format("run-{}", std::get<store::RunId>(what));
    output = (stem.empty() ? "pack" : stem) + ".tar.zst";
  }
  ASSAY_TRY(const lineage::PackReport report,
            lineage::pack(store, what, directory / output, options.force));

  const auto count = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  base::Json runs = base::Json::array();
  for (const store::RunRecord& run : report.manifest.runs) runs.push_back(run.id);
  base::Json left_out = base::Json::array();
  for (const lineage::LeftOutFile& one : report.manifest.left_out) {
    left_out.push_back({{"path", one.path}, {"why", one.why}});
  }
  session.print_json({{"file", (directory / output).string()},
                      {"bytes", report.file_bytes},
                      {"runs", std::move(runs)},
                      {"contents", report.manifest.contents.size()},
                      {"contents_bytes", report.contents_bytes},
                      {"left_out", std::move(left_out)}});
  session.print(fmt::format("{}: {}, with {} and {} of {}\n", base::printable(output),
                            base::to_text(base::Bytes(report.file_bytes)),
                            base::counted(count(report.manifest.runs.size()), "run"),
                            base::counted(count(report.manifest.contents.size()), "content"),
                            base::to_text(base::Bytes(report.contents_bytes))));
  for (const lineage::LeftOutFile& one : report.manifest.left_out) {
    session.print(fmt::format("left out: {}: {}\n",
                              base::printable(lineage::shown_path(one.path, directory)), one.why));
  }
  session.next("assay unpack " + base::path_argument(output));
  return ExitCode::kYes;
}

}  // namespace

Verb pack_verb(const Session& session) {
  const auto options = std::make_shared<PackOptions>();
  return {
      .name = "pack",
      .description = "write everything needed to reproduce an artifact to one file",
      .examples = {"assay pack model.bin -o model.tar.zst"},
      .arguments =
          {{"NAME", "an artifact (path, hash or label), or a run", &options->name, true, {}, true}},
      .options = {{"-o,--output",
                   "the file; one that ends with .tar is not compressed",
                   &options->output,
                   {},
                   "FILE.tar.zst",
                   true},
                  {"--force", "replace the file if it exists", &options->force}},
      .action = [&session, options] { return pack(session, *options); }};
}

}  // namespace assay::cli
