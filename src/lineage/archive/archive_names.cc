#include "lineage/archive/archive_names.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/units.h"
#include "lineage/graph/disk_files.h"
#include "store/artifacts.h"
#include "store/labels.h"
#include "store/run_dependencies.h"
#include "store/run_reader.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

std::string size_text(std::int64_t bytes) {
  return base::to_text(base::Bytes(bytes));
}

base::Result<void> check_limit(const Archive& archive,
                               const std::vector<RecordedContent>& contents) {
  ASSAY_TRY(const std::optional<std::int64_t> limit, archive.limit());
  if (!limit) return {};
  ASSAY_TRY(const ArchiveUse use, archive.use());
  std::int64_t more = 0;
  for (const RecordedContent& content : contents) {
    if (!archive.contains(content.blake3)) more += content.size;
  }
  if (more == 0 || use.bytes + more <= *limit) return {};
  return base::fail(base::unfit_error(
      "archive",
      fmt::format("adding {} would exceed its limit of {} ({} are used)", size_text(more),
                  size_text(*limit), size_text(use.bytes)),
      "`assay gc` removes what nothing needs; `assay archive --limit` raises the limit"));
}

// Several paths may have the same content, which is archived once.
std::vector<RecordedContent> without_repetition(const std::vector<RecordedContent>& contents) {
  std::set<hash::Digest> seen;
  std::vector<RecordedContent> once;
  for (const RecordedContent& content : contents) {
    if (seen.insert(content.blake3).second) once.push_back(content);
  }
  return once;
}

base::Result<fs::path> target_of(const store::Store& store, const RecordedContent& content,
                                 const fs::path& root) {
  if (root.empty()) return fs::path(content.path);
  const fs::path relative = fs::path(content.path).lexically_relative(store.location().project);
  if (!relative.empty() && *relative.begin() != "..") return root / relative;
  return base::fail(base::failed_error(content.path, "is outside the project",
                                       "restore it separately: assay restore HASH -o PATH"));
}

}  // namespace

base::Result<std::optional<std::string>> find_on_disk(store::Store& store, DiskFiles& files,
                                                      const RecordedContent& content) {
  if (files.check(content.path, content.blake3, content.size) == OnDisk::kSame) return content.path;
  ASSAY_TRY(std::vector<store::FileAt> places, store::producers_of(store, content.blake3));
  ASSAY_TRY(const std::vector<store::FileAt> read, store::consumers_of(store, content.blake3));
  places.insert(places.end(), read.begin(), read.end());
  std::set<std::string> tried = {content.path};
  for (const store::FileAt& place : places) {
    if (!tried.insert(place.path).second) continue;
    if (files.check(place.path, content.blake3, content.size) == OnDisk::kSame) return place.path;
  }
  return std::nullopt;
}

base::Result<std::vector<RecordedContent>> contents_of(store::Store& store,
                                                       const RunOrArtifact& what, bool inputs) {
  std::vector<RecordedContent> contents;
  if (const auto* artifact = std::get_if<Artifact>(&what)) {
    if (artifact->blake3) contents.push_back({artifact->path, *artifact->blake3, artifact->size});
    return contents;
  }
  ASSAY_TRY(const store::RunRecord run, store::load_run(store, std::get<store::RunId>(what)));
  for (const store::Output& output : run.outputs) {
    if (!output.blake3) continue;
    contents.push_back({output.path, *output.blake3, output.size});
  }
  if (!inputs) return contents;
  for (const store::Input& input : run.inputs) {
    if (input.blake3) contents.push_back({input.path, *input.blake3, input.size});
  }
  return contents;
}

std::int64_t ArchiveReport::bytes(std::optional<Sharing> how) const {
  std::int64_t sum = 0;
  for (const ArchivedContent& one : archived) sum += one.how == how ? one.content.size : 0;
  return sum;
}

std::int64_t ArchiveReport::count(std::optional<Sharing> how) const {
  return std::count_if(archived.begin(), archived.end(),
                       [&](const ArchivedContent& one) { return one.how == how; });
}

base::Result<ArchiveReport> archive_contents(store::Store& store,
                                             const std::vector<RecordedContent>& contents) {
  const Archive archive(store.location());
  const std::vector<RecordedContent> wanted = without_repetition(contents);
  ASSAY_TRY_VOID(check_limit(archive, wanted));
  archive.remove_leftovers();
  ASSAY_TRY(DiskFiles files, DiskFiles::open(store));
  ArchiveReport report;
  for (const RecordedContent& content : wanted) {
    if (archive.has_undamaged(content.blake3)) {
      report.archived.push_back({content, std::nullopt});
      continue;
    }
    ASSAY_TRY(const auto path, find_on_disk(store, files, content));
    if (!path) {
      report.missing.push_back(content);
      continue;
    }
    ASSAY_TRY(const std::optional<Sharing> how, archive.add(*path, content.blake3));
    report.archived.push_back({content, how});
  }
  return report;
}

std::string cost_text(const ArchiveReport& report, const ArchiveUse& use) {
  std::string text = fmt::format(
      "archived {}", base::counted(static_cast<std::int64_t>(report.archived.size()), "content"));
  std::string_view between = ": ";
  const auto add = [&](std::optional<Sharing> how, std::string_view name) {
    if (report.count(how) == 0) return;
    text += fmt::format("{}{} {}", between, report.count(how), name);
    if (how) text += fmt::format(" ({})", size_text(report.bytes(how)));
    between = ", ";
  };
  add(Sharing::kCopied, "copied");
  add(Sharing::kShared, "sharing the disk space of the file");
  add(std::nullopt, "there already");
  return text + fmt::format("; the archive holds {}", size_text(use.bytes));
}

base::Result<std::vector<RestoredContent>> restore_contents(
    store::Store& store, const std::vector<RecordedContent>& contents,
    const RestoreRequest& request) {
  const Archive archive(store.location());
  std::vector<RestoredContent> restored;
  for (const RecordedContent& content : contents) {
    if (auto size = archive.size_of(content.blake3); !size) {
      size.error().where = content.path;
      return base::fail(std::move(size).error());
    }
    ASSAY_TRY(fs::path path, target_of(store, content, request.root));
    ASSAY_TRY_VOID(archive.check_target(content.blake3, path, request.existing));
    restored.push_back({content, std::move(path)});
  }
  for (RestoredContent& one : restored) {
    ASSAY_TRY(one.how, archive.restore(one.content.blake3, one.path, request.existing));
  }
  return restored;
}

base::Result<ArchiveUse> collect_archive(store::Store& store, const std::vector<store::RunId>& gone,
                                         bool dry_run) {
  const Archive archive(store.location());
  if (!dry_run) archive.remove_leftovers();
  std::vector<std::pair<hash::Digest, std::int64_t>> kept;
  ASSAY_TRY_VOID(archive.each([&](const hash::Digest& content, std::int64_t size) {
    kept.push_back({content, size});
  }));
  const std::set<store::RunId> without(gone.begin(), gone.end());
  const auto stays = [&](const std::vector<store::FileAt>& places) {
    return std::any_of(places.begin(), places.end(),
                       [&](const store::FileAt& at) { return !without.contains(at.run); });
  };
  ArchiveUse removed;
  for (const auto& [content, size] : kept) {
    ASSAY_TRY(const auto written, store::producers_of(store, content));
    ASSAY_TRY(const auto read, store::consumers_of(store, content));
    ASSAY_TRY(const auto labels, store::labels_of(store, content));
    if (stays(written) || stays(read) || !labels.empty()) continue;
    if (!dry_run) ASSAY_TRY_VOID(archive.remove(content));
    ++removed.contents;
    removed.bytes += size;
  }
  return removed;
}

}  // namespace assay::lineage
