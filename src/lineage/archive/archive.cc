#include "lineage/archive/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "base/file.h"
#include "base/number.h"
#include "base/units.h"
#include "hash/file.h"
#include "lineage/archive/new_file.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinishedPrefix = "new-";  // a file that is not complete yet
constexpr std::size_t kFolderDigits = 2;                // digits of the folder of an object
constexpr time_t kLeftoverAfter_s = 86400;
constexpr base::Bytes kLimitFile{64};

base::Result<bool> holds_content(const fs::path& path, const hash::Digest& content) {
  ASSAY_TRY(const hash::FileDigest hashed, hash::hash_file(path));
  return hashed.digest == content && !hashed.changed;
}

}  // namespace

fs::path Archive::file_of(const hash::Digest& content) const {
  const std::string hex = content.hex();
  return folder_ / hex.substr(0, kFolderDigits) / hex.substr(kFolderDigits);
}

bool Archive::contains(const hash::Digest& content) const {
  struct stat status {};
  return ::lstat(file_of(content).c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool Archive::has_undamaged(const hash::Digest& content) const {
  if (!contains(content)) return false;
  const auto right = holds_content(file_of(content), content);
  return right && *right;
}

base::Result<std::int64_t> Archive::size_of(const hash::Digest& content) const {
  struct stat status {};
  if (::lstat(file_of(content).c_str(), &status) == 0) return status.st_size;
  return base::fail(base::failed_error(content.hex(), "is not archived",
                                       "`assay archive` keeps contents; `assay gc` removes them"));
}

base::Result<void> Archive::make_folder(const fs::path& folder) const {
  for (const fs::path& one : {folder_, folder}) {
    if (::mkdir(one.c_str(), 0777) != 0 && errno != EEXIST) {
      return base::fail(base::system_error(one, "cannot be created", errno));
    }
  }
  return {};
}

base::Result<std::optional<Sharing>> Archive::add(const fs::path& path,
                                                  const hash::Digest& content) const {
  if (has_undamaged(content)) return std::nullopt;
  const fs::path target = file_of(content);
  ASSAY_TRY_VOID(make_folder(target.parent_path()));
  ASSAY_TRY(const base::UniqueFd source, base::open_regular(path));
  ASSAY_TRY(const struct stat status, base::regular_status(source.get(), path));
  ASSAY_TRY(NewFile made, NewFile::make(folder_, kUnfinishedPrefix));

  ASSAY_TRY(const Sharing sharing, copy_contents(source.get(), made.fd(), target));
  // The permissions to read and to execute are restored with the content.
  ::fchmod(made.fd(), status.st_mode & 0555);
  ASSAY_TRY(const bool same, holds_content(made.name(), content));
  if (!same) {
    return base::fail(base::failed_error(path, "differs from what was recorded",
                                         "it was changed; record it again"));
  }
  // Another process may have archived it first; the content is the same.
  ASSAY_TRY_VOID(made.sync_and_rename_to(target, Existing::kReplace));
  return sharing;
}

base::Result<void> Archive::remove(const hash::Digest& content) const {
  const fs::path file = file_of(content);
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
    return base::fail(base::system_error(file, "cannot be removed", errno));
  }
  ::rmdir(file.parent_path().c_str());  // if it is empty
  return {};
}

base::Result<void> Archive::check_target(const hash::Digest& content, const fs::path& path,
                                         Existing existing) const {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (S_ISDIR(status.st_mode)) {
    return base::fail(base::failed_error(path, "is a folder", "restore it elsewhere with -o"));
  }
  if (existing == Existing::kReplace) return {};
  const auto same = S_ISREG(status.st_mode) ? holds_content(path, content) : false;
  if (same && *same) return {};
  return base::fail(base::failed_error(path, "has different content and is not overwritten",
                                       "replace it with --force, or restore it elsewhere with -o"));
}

base::Result<Archive::Restored> Archive::restore(const hash::Digest& content, const fs::path& path,
                                                 Existing existing) const {
  ASSAY_TRY_VOID(size_of(content));
  ASSAY_TRY_VOID(check_target(content, path, existing));
  struct stat status {};
  const bool there = ::lstat(path.c_str(), &status) == 0;
  if (there && S_ISREG(status.st_mode)) {
    const auto same = holds_content(path, content);
    if (same && *same) return Restored::kAlreadyThere;
  }
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  fs::create_directories(folder, error);
  if (error) return base::fail(base::system_error(folder, "cannot be created", error.value()));

  const fs::path object = file_of(content);
  ASSAY_TRY(const base::UniqueFd source, base::open_regular(object));
  ASSAY_TRY(const struct stat kept, base::regular_status(source.get(), object));
  ASSAY_TRY(NewFile made, NewFile::make(folder, ".assay-restore-"));
  ASSAY_TRY_VOID(copy_contents(source.get(), made.fd(), path));
  ASSAY_TRY(const bool same, holds_content(made.name(), content));
  if (!same) {
    return base::fail(
        base::failed_error(object, "is damaged: its content does not match its hash", "remove it"));
  }
  const mode_t umask_now = ::umask(0);
  ::umask(umask_now);
  // Restores write permission for everyone who has read permission, as far as the umask allows.
  ::fchmod(made.fd(), ((kept.st_mode & 0555) | ((kept.st_mode & 0444) >> 1)) & ~umask_now);
  ASSAY_TRY_VOID(made.rename_to(path, existing));
  return there ? Restored::kReplaced : Restored::kMade;
}

base::Result<void> Archive::each(
    const std::function<void(const hash::Digest& content, std::int64_t size)>& visit) const {
  std::error_code error;
  for (fs::directory_iterator folder(folder_, error), end; !error && folder != end;
       folder.increment(error)) {
    const std::string prefix = folder->path().filename().string();
    if (prefix.size() != kFolderDigits) continue;
    std::error_code inner;
    for (fs::directory_iterator file(folder->path(), inner), last; !inner && file != last;
         file.increment(inner)) {
      const auto content = hash::parse_digest(prefix + file->path().filename().string());
      struct stat status {};
      if (!content || ::lstat(file->path().c_str(), &status) != 0) continue;
      visit(*content, status.st_size);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::fail(base::system_error(folder_, "cannot be read", error.value()));
  }
  return {};
}

base::Result<ArchiveUse> Archive::use() const {
  ArchiveUse use;
  ASSAY_TRY_VOID(each([&](const hash::Digest&, std::int64_t size) {
    ++use.contents;
    use.bytes += size;
  }));
  return use;
}

base::Result<std::optional<std::int64_t>> Archive::limit() const {
  const fs::path file = folder_ / "limit";
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  ASSAY_TRY(const std::string text, base::read_file(file, kLimitFile));
  const auto bytes = text.ends_with('\n')
                         ? base::parse_number<std::int64_t>(text.substr(0, text.size() - 1))
                         : std::nullopt;
  if (!bytes || *bytes < 0) {
    return base::fail(base::unfit_error(file, "is not a number of bytes",
                                        "set it again: assay archive --limit SIZE"));
  }
  return bytes;
}

base::Result<void> Archive::set_limit(std::optional<std::int64_t> bytes) const {
  ASSAY_TRY_VOID(make_folder(folder_));
  const fs::path file = folder_ / "limit";
  if (bytes) return base::replace_file(file, fmt::format("{}\n", *bytes));
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
    return base::fail(base::system_error(file, "cannot be removed", errno));
  }
  return {};
}

void Archive::remove_leftovers() const {
  std::error_code error;
  for (fs::directory_iterator file(folder_, error), end; !error && file != end;
       file.increment(error)) {
    struct stat status {};
    const std::string name = file->path().filename().string();
    if (!name.starts_with(kUnfinishedPrefix) || ::lstat(file->path().c_str(), &status) != 0)
      continue;
    if (::time(nullptr) - status.st_ctime > kLeftoverAfter_s) ::unlink(file->path().c_str());
  }
}

}  // namespace assay::lineage
