#include "lineage/graph/disk_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/clock.h"
#include "hash/blake3.h"
#include "hash/file.h"
#include "store/artifacts.h"

namespace assay::lineage {

base::Result<DiskFiles> DiskFiles::open(store::Store& store) {
  ASSAY_TRY(store::HashCache cache, store::HashCache::prepare(store));
  // Without the rules of the file, if it cannot be read: then more counts.
  auto rules = read_filter_file(store.location().project);
  const char* home = std::getenv("HOME");
  Filter filter({.root = store.location().project,
                 .home = home == nullptr ? "" : home,
                 .user_rules = rules ? *std::move(rules) : std::vector<Filter::UserRule>{}});
  return DiskFiles(store, std::move(cache), std::move(filter));
}

OnDisk DiskFiles::check(const std::string& path, const hash::Digest& content, std::int64_t size) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? OnDisk::kMissing : OnDisk::kChanged;
  }
  if (!S_ISREG(status.st_mode) || status.st_size != size) return OnDisk::kChanged;
  return content_at(path, status) == content ? OnDisk::kSame : OnDisk::kChanged;
}

bool DiskFiles::begins(const std::string& path, const hash::Digest& content, std::int64_t size) {
  std::ifstream file(path, std::ios::binary);
  hash::Hasher hasher;
  std::array<char, 1 << 16> buffer;
  while (size > 0 && file) {
    file.read(buffer.data(), std::min<std::int64_t>(size, buffer.size()));
    const auto got = static_cast<std::size_t>(file.gcount());
    hasher.update(std::as_bytes(std::span(buffer).first(got)));
    size -= file.gcount();
  }
  return size == 0 && file && hasher.finish() == content;
}

std::optional<hash::Digest> DiskFiles::content_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return content_at(path, status);
}

std::optional<hash::Digest> DiskFiles::content_at(const std::string& path,
                                                  const struct stat& status) {
  const auto known = cache_.find(hash::stamp_of(status));
  if (known && *known) return **known;
  const std::int64_t now = base::system_clock().wall_ns();
  const auto hashed = hash::hash_file(path);
  if (!hashed || hashed->changed) return std::nullopt;
  hashed_.push_back({hashed->stamp, hashed->digest, now});
  return hashed->digest;
}

store::RunId DiskFiles::writer_of(const std::string& path) {
  const auto content = content_of(path);
  if (!content) return 0;
  const auto makers = store::producers_of(*store_, *content);
  if (!makers) return 0;
  const auto here = std::find_if(makers->begin(), makers->end(),
                                 [&](const store::FileAt& made) { return made.path == path; });
  return here == makers->end() ? 0 : here->run;
}

namespace {

std::optional<std::string> link_at(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  return error ? std::nullopt : std::optional(target.string());
}

std::optional<std::vector<std::string>> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(folder, error);
  if (error) return std::nullopt;
  for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (at->is_symlink(ignored)) names.push_back(name + store::kListedLink);
    names.push_back(name + (at->is_directory(ignored) ? "/" : ""));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

DiskQueries DiskFiles::queries() {
  return {.content = [this](const std::string& path, const hash::Digest& content,
                            std::int64_t size) { return check(path, content, size); },
          .begins = &DiskFiles::begins,
          .link = link_at,
          .exists =
              [](const std::string& path) {
                struct stat status {};
                return ::lstat(path.c_str(), &status) == 0;
              },
          .state = [](const std::string& path, bool size) -> std::optional<std::string> {
            struct stat status {};
            if (::stat(path.c_str(), &status) != 0) return std::nullopt;
            return store::queried_state(status, size);
          },
          .counts =
              [this](const std::string& path) {
                const bool folder = path.ends_with('/');
                const std::string_view bare =
                    std::string_view(path).substr(0, path.size() - folder);
                return filter_.rule(folder ? filter_.rule_for_folder(bare) : filter_.rule_for(bare))
                    .keep;
              },
          .names = names_in,
          .writer = [this](const std::string& path) { return writer_of(path); },
          .interpreter =
              [this](const std::string& path) {
                const auto known = interpreters_.find(path);
                if (known != interpreters_.end()) return known->second;
                return interpreters_.emplace(path, interpreter_at(path)).first->second;
              },
          .changed_unix_ns = [](const std::string& path) -> std::optional<std::int64_t> {
            struct stat status {};
            if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
            return base::nanoseconds(status.st_ctim);
          }};
}

base::Result<void> DiskFiles::save_hashes() {
  if (hashed_.empty()) return {};
  ASSAY_TRY(store::Transaction transaction, store::Transaction::begin(store_->database()));
  ASSAY_TRY_VOID(cache_.insert(hashed_));
  ASSAY_TRY_VOID(transaction.commit());
  hashed_.clear();
  return {};
}

}  // namespace assay::lineage
