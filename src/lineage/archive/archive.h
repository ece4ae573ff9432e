// Archive: copies of file contents in `.assay/archive/`, each in a file named by its BLAKE3.
// Nothing is archived unless asked for. The verbs that use it: archive_names.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "hash/digest.h"
#include "lineage/archive/copy_contents.h"
#include "lineage/archive/new_file.h"
#include "store/location.h"

namespace assay::lineage {

struct ArchiveUse {
  std::int64_t contents = 0;
  std::int64_t bytes = 0;  // the sum of their sizes; reflinks take less
};

class Archive {
 public:
  explicit Archive(const store::Location& location) : folder_(location.directory / "archive") {}

  [[nodiscard]] bool contains(const hash::Digest& content) const;
  // Whether the content is archived and its file, which is read, still has this digest.
  [[nodiscard]] bool has_undamaged(const hash::Digest& content) const;
  // The archive's file for a content; it may not exist.
  [[nodiscard]] std::filesystem::path file_of(const hash::Digest& content) const;
  // The size of an archived content.
  [[nodiscard]] base::Result<std::int64_t> size_of(const hash::Digest& content) const;

  // Archives the file at `path`; an error if its content is not `content`. The archive's file
  // appears whole or not at all. It is never a hard link, because the original can still be
  // changed. A damaged copy is replaced. Nothing: the content was archived already.
  base::Result<std::optional<Sharing>> add(const std::filesystem::path& path,
                                           const hash::Digest& content) const;
  base::Result<void> remove(const hash::Digest& content) const;

  // Checks the archived content's digest and puts it at `path`, whole or not at all. Never a hard
  // link, because the restored file may be changed. kKeep: an error if something else is at `path`;
  // check_target() detects that in advance.
  using Existing = NewFile::Existing;
  enum class Restored { kMade, kReplaced, kAlreadyThere };
  base::Result<void> check_target(const hash::Digest& content, const std::filesystem::path& path,
                                  Existing existing) const;
  base::Result<Restored> restore(const hash::Digest& content, const std::filesystem::path& path,
                                 Existing existing) const;

  base::Result<void> each(
      const std::function<void(const hash::Digest& content, std::int64_t size)>& visit) const;
  [[nodiscard]] base::Result<ArchiveUse> use() const;

  // The most bytes that the archive may hold; none: unlimited.
  [[nodiscard]] base::Result<std::optional<std::int64_t>> limit() const;
  base::Result<void> set_limit(std::optional<std::int64_t> bytes) const;

  // Removes temporary files of killed processes that are at least a day old.
  void remove_leftovers() const;

 private:
  [[nodiscard]] base::Result<void> make_folder(const std::filesystem::path& folder) const;

  std::filesystem::path folder_;
};

}  // namespace assay::lineage
