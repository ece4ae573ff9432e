// assay archive [NAME…]: keeps contents of files in the store, so that they can be restored.
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

struct ArchiveOptions {
  std::vector<std::string> names;
  bool inputs = false;
  std::vector<std::string> limits;
};

std::string_view how_text(const std::optional<lineage::Sharing>& how) {
  if (!how) return "there already";
  switch (*how) {
    case lineage::Sharing::kShared:
      return "shared";
    case lineage::Sharing::kCopied:
      return "copied";
  }
  return {};
}

Result<void> set_limit(const lineage::Archive& archive, const std::string& text) {
  if (text == "none") return archive.set_limit(std::nullopt);
  const auto bytes = base::parse_bytes(text);
  if (!bytes || bytes->count() < 0) {
    return base::fail(base::usage_error("archive --limit", fmt::format("'{}' is not a size", text),
                                        "for example 20GiB, or none"));
  }
  return archive.set_limit(bytes->count());
}

Result<base::Json> use_json(const lineage::Archive& archive) {
  ASSAY_TRY(const lineage::ArchiveUse use, archive.use());
  ASSAY_TRY(const auto limit, archive.limit());
  return base::Json{
      {"contents", use.contents}, {"bytes", use.bytes}, {"limit_bytes", base::or_null(limit)}};
}

Result<ExitCode> show_use(const Session& session, const lineage::Archive& archive) {
  ASSAY_TRY(const base::Json use, use_json(archive));
  session.print_json(use);
  const auto size = [](std::int64_t bytes) { return base::to_text(base::Bytes(bytes)); };
  session.print(fmt::format(
      "the archive holds {} in {}, with {}\n", size(use["bytes"].get<std::int64_t>()),
      base::counted(use["contents"].get<std::int64_t>(), "content"),
      use["limit_bytes"].is_null() ? "no limit"
                                   : "a limit of " + size(use["limit_bytes"].get<std::int64_t>())));
  session.next("assay archive FILE");
  return ExitCode::kYes;
}

Result<ExitCode> archive(const Session& session, const ArchiveOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  const lineage::Archive archive(store.location());
  if (!options.limits.empty()) ASSAY_TRY_VOID(set_limit(archive, options.limits.back()));
  if (options.names.empty()) return show_use(session, archive);

  std::vector<lineage::RecordedContent> wanted;
  for (const std::string& name : options.names) {
    ASSAY_TRY(const lineage::RunOrArtifact what, lineage::resolve_name(store, name, directory));
    ASSAY_TRY(const auto contents, lineage::contents_of(store, what, options.inputs));
    if (contents.empty()) {
      return base::fail(base::usage_error(fmt::format("archive '{}'", base::shortened(name, 200)),
                                          "has no recorded content to archive"));
    }
    wanted.insert(wanted.end(), contents.begin(), contents.end());
  }
  ASSAY_TRY(const lineage::ArchiveReport report, lineage::archive_contents(store, wanted));

  base::Json archived = base::Json::array();
  base::Table table({"content", "size", "how", "path"});
  for (const lineage::ArchivedContent& one : report.archived) {
    const auto& content = one.content;
    archived.push_back({{"path", content.path},
                        {"blake3", content.blake3.hex()},
                        {"size", content.size},
                        {"how", how_text(one.how)}});
    table.row({content.blake3.hex().substr(0, 12), base::to_text(base::Bytes(content.size)),
               std::string(how_text(one.how)),
               base::printable(lineage::shown_path(content.path, directory))});
  }
  base::Json missing = base::Json::array();
  for (const auto& content : report.missing) {
    missing.push_back({{"path", content.path}, {"blake3", content.blake3.hex()}});
  }
  ASSAY_TRY(const base::Json use, use_json(archive));
  ASSAY_TRY(const lineage::ArchiveUse total, archive.use());
  session.print_json(
      {{"archived", std::move(archived)}, {"missing", std::move(missing)}, {"archive", use}});
  if (!table.empty()) session.print(table);
  session.print(lineage::cost_text(report, total) + "\n");
  for (const auto& content : report.missing) {
    session.print(fmt::format("not archived: {} has changed since it was recorded, or is gone\n",
                              base::printable(lineage::shown_path(content.path, directory))));
  }
  if (report.missing.empty()) {
    session.next("assay restore " + base::path_argument(options.names.front()));
  }
  return report.missing.empty() ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace

Verb archive_verb(const Session& session) {
  const auto options = std::make_shared<ArchiveOptions>();
  return {.name = "archive",
          .description = "archive the contents of files so that they can be restored",
          .examples = {"assay archive model.bin", "assay archive @2 --inputs",
                       "assay archive --limit 20GiB"},
          .arguments = {{"NAME",
                         "a file, a run (its outputs), a label or a hash; without names, show the "
                         "archive's size",
                         nullptr,
                         false,
                         {},
                         true,
                         &options->names}},
          .options = {{"--inputs", "for a run, archive its inputs too", &options->inputs},
                      {"--limit",
                       "maximum size of the archive from now on, or none",
                       &options->limits,
                       {},
                       "SIZE",
                       false,
                       true}},
          .action = [&session, options] { return archive(session, *options); }};
}

}  // namespace assay::cli
