#include "lineage/export/crate_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "lineage/export/parts.h"
#include "store/needs.h"

namespace assay::lineage {
namespace {

using base::Json;

std::string unknown_file_uri(const store::RunRecord& run, const std::string& path) {
  constexpr std::string_view kScheme = "file://";
  return fmt::format("urn:assay:file:unknown-{}{}", run.uid, file_uri(path).substr(kScheme.size()));
}

}  // namespace

CrateFiles::CrateFiles(const ExportSubject& subject) : root_(subject.project_root) {
  std::map<store::RunId, const store::RunRecord*>
      in_time;  // the subject has producers first, no more
  for (const store::RunRecord& run : subject.runs) in_time[run.id] = &run;
  for (const auto& [id, run] : in_time) {
    for (const store::Input& input : store::needs_of(*run, store::Logs::kYes)) {
      last_[input.path] = input.blake3;
    }
    for (const store::Output& output : run->outputs) {
      if (!is_left(output)) last_.erase(output.path);
      if (output.status == store::OutputStatus::kRenamed) last_.erase(output.from);
    }
    for (const store::Output& output : run->outputs) {
      if (is_left(output)) last_[output.path] = output.blake3;
    }
  }
}

std::string CrateFiles::add(const store::RunRecord& run, const std::string& path,
                            const std::optional<hash::Digest>& digest, std::int64_t size) {
  const auto last = last_.find(path);
  std::string id = crate_uri(path, root_);
  // Readers take what a URI says for UTF-8; and the description of the crate is no file of it.
  const bool by_path = last != last_.end() && (!digest || last->second == digest) &&
                       base::is_utf8(path) && id != kCrateMetadata;
  if (!by_path) id = digest ? content_uri(*digest) : unknown_file_uri(run, path);
  File& file = files_[id];
  file.paths.insert(path);
  file.by_path = by_path;
  if (digest) {
    file.content = digest;
    file.size = std::max(file.size, size);
  }
  return id;
}

Json CrateFiles::file_json(const std::string& id, const File& file) {
  std::vector<std::string> paths;
  for (const std::string& path : file.paths) paths.push_back(text_path(path));
  Json entity{{"@id", id}, {"@type", "File"}, {"name", paths[0].substr(paths[0].rfind('/') + 1)}};
  if (!file.by_path || id.starts_with("file:")) {
    entity["alternateName"] = paths.size() == 1 ? Json(paths[0]) : Json(paths);
  }
  if (file.size >= 0) entity["contentSize"] = std::to_string(file.size);
  if (file.content) entity["identifier"] = content_uri(*file.content);
  return entity;
}

std::vector<std::string> CrateFiles::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, file] : files_) ids.push_back(id);
  return ids;
}

std::vector<Json> CrateFiles::json() const {
  std::vector<Json> entities;
  for (const auto& [id, file] : files_) entities.push_back(file_json(id, file));
  return entities;
}

}  // namespace assay::lineage
