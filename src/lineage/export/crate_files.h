// CrateFiles: the files of an RO-Crate, each under the id by which the crate's readers can find it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "lineage/export/export.h"

namespace assay::lineage {

// The crate's own description, in its root.
inline constexpr const char* kCrateMetadata = "ro-crate-metadata.json";

class CrateFiles {
 public:
  explicit CrateFiles(const ExportSubject& subject);

  // The id. A file goes by its path if these runs left it there under a name that is UTF-8, else by
  // its content; one whose content is not known is then a file of its run alone.
  std::string add(const store::RunRecord& run, const std::string& path,
                  const std::optional<hash::Digest>& digest, std::int64_t size);

  [[nodiscard]] std::vector<std::string> ids() const;
  [[nodiscard]] std::vector<base::Json> json() const;  // in the order of the ids

 private:
  struct File {
    std::set<std::string> paths;
    std::optional<hash::Digest> content;
    std::int64_t size = -1;  // not known
    bool by_path = false;    // its id is its path
  };
  static base::Json file_json(const std::string& id, const File& file);

  std::string root_;
  // Which content each path has after the runs; paths that are gone are not there.
  std::map<std::string, std::optional<hash::Digest>> last_;
  std::map<std::string, File> files_;
};

}  // namespace assay::lineage
