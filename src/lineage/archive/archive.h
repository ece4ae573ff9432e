// Archive: contents that are kept, `.assay/archive/`, each in a file named by its BLAKE3. Nothing
// is kept unless asked for. What a name on the command line stands for: archive_names.h.
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
  // Whether it is there and its file, which is read, still has it.
  [[nodiscard]] bool has_undamaged(const hash::Digest& content) const;
  // The file that a content is in, if it is there.
  [[nodiscard]] std::filesystem::path file_of(const hash::Digest& content) const;
  // The size of a content that it has.
  [[nodiscard]] base::Result<std::int64_t> size_of(const hash::Digest& content) const;

  // Keeps the content of the file at `path`, which must be this one: an error if it is not, whole
  // or not at all. Never a hard link: who owns the file can change it. A damaged content is
  // replaced. Nothing: it was there already.
  base::Result<std::optional<Sharing>> add(const std::filesystem::path& path,
                                           const hash::Digest& content) const;
  base::Result<void> remove(const hash::Digest& content) const;

  // Puts the content at `path`, whole or not at all, and checks its digest before. Never a hard
  // link: the file may be changed. kKeep: an error if something else is there, which
  // check_target() says beforehand.
  using Existing = NewFile::Existing;
  enum class Restored { kMade, kReplaced, kWasThere };
  base::Result<void> check_target(const hash::Digest& content, const std::filesystem::path& path,
                                  Existing existing) const;
  base::Result<Restored> restore(const hash::Digest& content, const std::filesystem::path& path,
                                 Existing existing) const;

  base::Result<void> each(
      const std::function<void(const hash::Digest& content, std::int64_t size)>& visit) const;
  [[nodiscard]] base::Result<ArchiveUse> use() const;

  // The most bytes that it may take; none: any.
  [[nodiscard]] base::Result<std::optional<std::int64_t>> limit() const;
  base::Result<void> set_limit(std::optional<std::int64_t> bytes) const;

  // Files that processes which were killed left behind. Removed if they are a day old.
  void remove_leftovers() const;

 private:
  [[nodiscard]] base::Result<void> make_folder(const std::filesystem::path& folder) const;

  std::filesystem::path folder_;
};

}  // namespace assay::lineage
