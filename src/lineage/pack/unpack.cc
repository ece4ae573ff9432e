#include "lineage/pack/unpack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/folders.h"
#include "base/scratch_folder.h"
#include "base/units.h"
#include "hash/blake3.h"
#include "lineage/archive/archive.h"
#include "lineage/pack/relocation.h"
#include "lineage/pack/tar.h"
#include "lineage/pack/zstd.h"
#include "lineage/redact/diff.h"
#include "store/run_dependencies.h"
#include "store/run_writer.h"
#include "store/store.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongestManifest = std::int64_t{256} << 20;

// The folder that a pack is unpacked into. Starts with a new or empty folder, and restores that
// state unless keep() is called.
class FreshFolder {
 public:
  static base::Result<FreshFolder> make(const fs::path& folder);
  FreshFolder(FreshFolder&& other) noexcept;
  FreshFolder& operator=(FreshFolder&&) = delete;
  ~FreshFolder();
  [[nodiscard]] const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  FreshFolder(fs::path path, bool made) : path_(std::move(path)), made_(made) {}
  fs::path path_;
  bool made_;
};

base::Result<FreshFolder> FreshFolder::make(const fs::path& folder) {
  const bool made = ::mkdir(folder.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) {
    return base::fail(base::system_error(folder, "cannot be created", errno));
  }
  std::error_code error;
  const bool empty =
      fs::is_directory(fs::symlink_status(folder, error)) && fs::is_empty(folder, error) && !error;
  if (!empty) {
    return base::fail(
        base::usage_error(folder, "is not an empty folder", "name a new one with --directory"));
  }
  fs::path real = fs::canonical(folder, error);
  if (error) return base::fail(base::system_error(folder, "cannot be read", error.value()));
  return FreshFolder(std::move(real), made);
}

FreshFolder::FreshFolder(FreshFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), made_(other.made_) {}

FreshFolder::~FreshFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  for (fs::directory_iterator entry(path_, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code left;
    fs::remove_all(entry->path(), left);
  }
  if (made_) fs::remove(path_, ignored);
}

class Unpacker {
 public:
  Unpacker(std::string where, fs::path folder)
      : where_(std::move(where)), folder_(std::move(folder)) {}

  base::Result<void> read(int fd) {
    TarReader tar(fd, where_);
    ASSAY_TRY(const std::optional<TarMember> first, tar.next());
    if (!first || first->name != "manifest.json") {
      return base::fail(bad("does not begin with a manifest"));
    }
    ASSAY_TRY(const std::string text, tar.read_all(kLongestManifest));
    ASSAY_TRY(report_.manifest, parse_manifest(text, where_));
    ASSAY_TRY_VOID(check_space());
    relocation_.emplace(report_.manifest, folder_);
    // A name that cannot collide with a path of the manifest.
    ASSAY_TRY(contents_, base::make_unique_folder(folder_, ".assay-unpack-"));
    std::set<hash::Digest> seen;
    while (true) {
      ASSAY_TRY(const std::optional<TarMember> member, tar.next());
      if (!member) break;
      ASSAY_TRY(const hash::Digest content, content_of(*member));
      if (!seen.insert(content).second) {
        return base::fail(bad(fmt::format("has '{}' twice", member->name)));
      }
      ASSAY_TRY_VOID(read_content(tar, content));
    }
    if (seen.size() != report_.manifest.contents.size()) {
      return base::fail(bad("lacks contents that its manifest lists"));
    }
    return {};
  }

  // Places the files that no run of the pack makes. If runs read several contents at one path, the
  // last one is placed and the others go into the archive.
  base::Result<void> place_files(const store::Location& location) {
    const std::set<hash::Digest> withheld = secret_contents();
    std::map<std::string, std::vector<hash::Digest>> wanted;
    for (const store::RunRecord& run : report_.manifest.runs) {
      for (const store::Input& needed : store::dependencies_of(run)) {
        if (!needed.blake3 || !report_.manifest.contents.contains(*needed.blake3)) continue;
        if (withheld.contains(*needed.blake3)) continue;
        auto& contents = wanted[relocation_->path(needed.path)];
        std::erase(contents, *needed.blake3);
        contents.push_back(*needed.blake3);
      }
    }
    const Archive archive(location);
    for (const auto& [path, contents] : wanted) {
      ASSAY_TRY_VOID(place(contents.back(), path));
      report_.placed.push_back(path);
      if (contents.size() == 1) continue;
      report_.older.push_back(path);
      for (const hash::Digest& older : contents) {
        if (older == contents.back()) continue;
        ASSAY_TRY_VOID(archive.add(stored(older), older));
      }
    }
    return {};
  }

  base::Result<void> record_runs(store::Store& store) {
    std::error_code error;
    const fs::path kept = store.location().directory / "pack";
    fs::create_directory(kept, error);
    ASSAY_TRY(const std::string manifest, manifest_text(report_.manifest));
    ASSAY_TRY_VOID(base::write_file(kept / "manifest.json", manifest));
    for (store::RunRecord& run : report_.manifest.runs) {
      if (run.context.git && !run.context.git->diff.empty()) {
        ASSAY_TRY(const hash::Digest diff, hash::parse_digest(run.context.git->diff));
        ASSAY_TRY_VOID(place(diff, kept / (run.uid + ".diff")));
      }
      relocation_->apply(run);
      ASSAY_TRY(run.id, store::record_run(store, run));
    }
    if (!report_.manifest.artifact_path.empty()) {
      report_.manifest.artifact_path = relocation_->path(report_.manifest.artifact_path);
    }
    fs::remove_all(contents_, error);
    return {};
  }

  UnpackReport take() { return std::move(report_); }

 private:
  [[nodiscard]] base::Error bad(std::string what) const {
    return base::usage_error(where_, std::move(what), "make it again with `assay pack`");
  }

  // Contents that were left out because of their name, but are in the pack under another name, as
  // is possible in packs from elsewhere. Empty files hold no secret.
  [[nodiscard]] std::set<hash::Digest> secret_contents() const {
    std::set<std::string> left_out;
    for (const LeftOutFile& one : report_.manifest.left_out) {
      if (is_secret_file(one.path)) left_out.insert(one.path);
    }
    std::set<hash::Digest> found;
    for (const store::RunRecord& run : report_.manifest.runs) {
      for (const store::Input& needed : store::dependencies_of(run)) {
        if (!needed.blake3 || !left_out.contains(needed.path)) continue;
        const auto content = report_.manifest.contents.find(*needed.blake3);
        if (content != report_.manifest.contents.end() && content->second.size > 0) {
          found.insert(*needed.blake3);
        }
      }
    }
    return found;
  }

  [[nodiscard]] fs::path stored(const hash::Digest& content) const {
    return contents_ / content.hex();
  }

  base::Result<void> check_space() {
    std::int64_t needed = 0;
    for (const auto& [digest, content] : report_.manifest.contents) {
      if (__builtin_add_overflow(needed, content.size, &needed)) {
        return base::fail(bad("has contents of an impossible size"));
      }
    }
    return base::check_free_space(base::free_space(folder_), base::Bytes(needed), where_);
  }

  // Names of members must be digests, so that no member can choose where it is written.
  base::Result<hash::Digest> content_of(const TarMember& member) const {
    constexpr std::string_view kMemberPrefix = "contents/";
    const bool named = member.name.starts_with(kMemberPrefix);
    const auto digest = hash::parse_digest(named ? member.name.substr(kMemberPrefix.size()) : "");
    if (!named || !digest) {
      return base::fail(
          bad(fmt::format("has a member with a name that is not allowed, '{}'", member.name)));
    }
    const auto listed = report_.manifest.contents.find(*digest);
    if (listed == report_.manifest.contents.end() || listed->second.size != member.size) {
      return base::fail(
          bad(fmt::format("has a member that does not match its manifest, '{}'", member.name)));
    }
    return *digest;
  }

  base::Result<void> read_content(TarReader& tar, const hash::Digest& content) {
    const fs::path path = stored(content);
    const base::UniqueFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file.valid()) return base::fail(base::system_error(path, "cannot be created", errno));
    hash::Hasher hasher;
    std::vector<char> piece(std::size_t{1} << 20);
    while (true) {
      ASSAY_TRY(const std::size_t got, tar.read(piece));
      if (got == 0) break;
      const std::string_view bytes(piece.data(), got);
      hasher.update(std::as_bytes(std::span(bytes)));
      if (!base::write_all(file.get(), bytes)) {
        return base::fail(base::system_error(path, "cannot be written", errno));
      }
    }
    if (hasher.finish() != content) {
      return base::fail(
          bad(fmt::format("is damaged: the content of {} does not match its hash", content.hex())));
    }
    struct stat status {};
    ::fstat(file.get(), &status);
    if (report_.manifest.contents.at(content).executable) {
      ::fchmod(file.get(), status.st_mode | ((status.st_mode & 0444) >> 2));
    }
    return {};
  }

  base::Result<void> place(const hash::Digest& content, const fs::path& path) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      return base::fail(base::system_error(path.parent_path(), "cannot be created", error.value()));
    }
    ASSAY_TRY(const base::UniqueFd from, base::open_regular(stored(content)));
    ASSAY_TRY(const struct stat status, base::regular_status(from.get(), stored(content)));
    const base::UniqueFd to(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, status.st_mode));
    if (!to.valid()) return base::fail(base::system_error(path, "cannot be created", errno));
    ASSAY_TRY_VOID(copy_contents(from.get(), to.get(), path));
    return {};
  }

  std::string where_;
  fs::path folder_;
  fs::path contents_;  // contents that have not been placed yet
  std::optional<Relocation> relocation_;
  UnpackReport report_;
};

}  // namespace

base::Result<UnpackReport> unpack(const fs::path& file, const fs::path& folder) {
  ASSAY_TRY(const base::UniqueFd fd, base::open_regular(file));
  ASSAY_TRY(FreshFolder fresh, FreshFolder::make(folder));
  Unpacker unpacker(file, fresh.path());
  ASSAY_TRY(ZstdStream stream, ZstdStream::reading_from(fd.get(), file));
  ASSAY_TRY_VOID(unpacker.read(stream.descriptor()));
  // The store is created before the files, because older contents go into its archive.
  const store::Location location = store::location_in(fresh.path());
  ASSAY_TRY(store::Store store, store::Store::create(location, store::StoreProgram{}));
  ASSAY_TRY_VOID(unpacker.place_files(location));
  ASSAY_TRY_VOID(unpacker.record_runs(store));
  fresh.keep();
  return unpacker.take();
}

}  // namespace assay::lineage
