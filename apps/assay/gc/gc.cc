// assay gc: removes runs that no current stage, label or lineage needs.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/shared/run_text.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "lineage/archive/archive_names.h"
#include "lineage/graph/disk_files.h"
#include "lineage/graph/run_json.h"
#include "store/cleaning.h"

namespace assay::cli {
namespace {

// Cached digests that were not used for this long are removed.
constexpr double kHashesKept_s = 90 * 86400.0;

struct GcOptions {
  std::string keep, older_than;
  bool dry_run = false;
};

base::Result<store::GcRequest> request_of(const GcOptions& given) {
  store::GcRequest request{.dry_run = given.dry_run};
  const std::int64_t now = base::system_clock().wall_ns();
  request.hashes_before_unix_ns = now - static_cast<std::int64_t>(kHashesKept_s * 1e9);
  if (!given.keep.empty()) {
    ASSAY_TRY(request.keep, number_option<std::int64_t>("gc --keep", given.keep, 0));
  }
  if (!given.older_than.empty()) {
    const auto age = base::parse_seconds(given.older_than);
    if (!age || age->count() < 0 || age->count() > 5e9) {
      return base::fail(
          base::usage_error("gc", fmt::format("--older-than '{}' is not an age", given.older_than),
                            "for example 30d or 12h"));
    }
    request.before_unix_ns = now - static_cast<std::int64_t>(age->count() * 1e9);
  }
  return request;
}

base::Result<base::ExitCode> gc(const Session& session, const GcOptions& given) {
  ASSAY_TRY(store::GcRequest request, request_of(given));
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(lineage::DiskFiles files, lineage::DiskFiles::open(store));
  request.on_disk = [&files](const std::string& path, const hash::Digest& content,
                             std::int64_t size) {
    return files.check(path, content, size) == lineage::OnDisk::kSame;
  };
  ASSAY_TRY(const store::GcReport report, store::collect_garbage(store, request));
  std::vector<store::RunId> gone;
  for (const store::RunRecord& run : report.runs) gone.push_back(run.id);
  ASSAY_TRY(const lineage::ArchiveUse archived,
            lineage::collect_archive(store, gone, given.dry_run));
  base::Json list = base::Json::array();
  base::Table table({"run", "when", "outcome", "files", "command"});
  for (const store::RunRecord& run : report.runs) {
    if (session.json) list.push_back(lineage::run_head_json(run));
    table.row({fmt::format("{}", run.id), base::local_text(run.started_unix_ns), outcome_text(run),
               base::grouped(run.input_count + run.output_count), log_command(run)});
  }
  static_cast<void>(files.save_hashes());  // only a cache
  session.print_json(base::Json{{"dry_run", given.dry_run},
                                {"runs", std::move(list)},
                                {"files", report.files},
                                {"documents", report.documents},
                                {"packages", report.packages},
                                {"hashes", report.hashes},
                                {"archived_contents", archived.contents},
                                {"archived_bytes", archived.bytes},
                                {"bytes_before", report.bytes_before},
                                {"bytes_after", report.bytes_after}});
  if (!table.empty()) {
    session.print(table);
    session.print("\n");
  }
  session.print(fmt::format("{} {} with {}, {}, {}\n", given.dry_run ? "would remove" : "removed",
                            base::counted(static_cast<std::int64_t>(report.runs.size()), "run"),
                            base::counted(report.files, "file"),
                            base::counted(report.documents, "shared document"),
                            base::counted(report.hashes, "cached hash", "cached hashes")));
  if (archived.contents > 0) {
    session.print(fmt::format(
        "{} {} from the archive, {}\n", given.dry_run ? "would remove" : "removed",
        base::counted(archived.contents, "content"), base::to_text(base::Bytes(archived.bytes))));
  }
  if (!given.dry_run) {
    session.print(fmt::format("the store takes {}, before it took {}\n",
                              base::to_text(base::Bytes(report.bytes_after)),
                              base::to_text(base::Bytes(report.bytes_before))));
  }
  session.next(given.dry_run ? "assay gc" : "assay log");
  return base::ExitCode::kYes;
}

}  // namespace

Verb gc_verb(const Session& session) {
  const auto given = std::make_shared<GcOptions>();
  return {
      .name = "gc",
      .description = "remove runs that no stage, label or lineage needs",
      .examples = {"assay gc --dry-run", "assay gc --older-than 30d --keep 10"},
      .options =
          {{"--keep", "keep at least the N newest runs", &given->keep, {}, "N"},
           {"--older-than", "only runs older than this: 30d, 12h", &given->older_than, {}, "AGE"},
           {"--dry-run", "only print what would be removed", &given->dry_run}},
      .action = [&session, given] { return gc(session, *given); }};
}

}  // namespace assay::cli
