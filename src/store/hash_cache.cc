#include "store/hash_cache.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

namespace assay::store {
namespace {

// In a row, each file is a text of fixed length: inode, size, mtime_ns and ctime_ns as 16
// hexadecimal digits each, then its digest. (Text, because the migration of older stores has to
// write it in SQL.)
constexpr std::size_t kNumber = 16;
constexpr std::size_t kStamp = 4 * kNumber;
constexpr std::size_t kFile = kStamp + 2 * hash::Digest::kSize;

constexpr int kInodeBits = 4;             // 16 inodes: a row of at most 2 KiB
constexpr std::size_t kMostKnown = 4096;  // rows in memory: 8 MiB

// SQLite's integers are signed; the bits are the same.
std::int64_t as_signed(std::uint64_t value) {
  return std::bit_cast<std::int64_t>(value);
}

std::pair<std::int64_t, std::int64_t> key_of(const hash::FileStamp& stamp) {
  return {as_signed(stamp.device), as_signed(stamp.inode) >> kInodeBits};
}

void append_number(std::string& text, std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[(value >> static_cast<unsigned>(shift)) & 0xFU];
  }
}

std::string text_of(const hash::FileStamp& stamp) {
  std::string text;
  text.reserve(kFile);
  append_number(text, stamp.inode);
  append_number(text, static_cast<std::uint64_t>(stamp.size));
  append_number(text, static_cast<std::uint64_t>(stamp.mtime_ns));
  append_number(text, static_cast<std::uint64_t>(stamp.ctime_ns));
  return text;
}

// Where the file with this inode is in a row, or the row's end.
std::size_t place_of(std::string_view row, std::string_view inode) {
  std::size_t at = 0;
  while (at + kFile <= row.size() && row.substr(at, kNumber) != inode) at += kFile;
  return std::min(at, row.size());
}

bool is_settled(const HashedFile& file) {
  const std::int64_t settled = file.hashed_unix_ns - kStampTick_ns;
  return file.stamp.ctime_ns <= settled && file.stamp.mtime_ns <= settled;
}

}  // namespace

base::Result<HashCache> HashCache::prepare(Store& store) {
  ASSAY_TRY(Statement find,
            store.database().prepare("SELECT files FROM hash_cache WHERE device = ?1"
                                     " AND block = ?2"));
  return HashCache(store.database(), std::move(find));
}

base::Result<std::string> HashCache::read(const Key& key) {
  ASSAY_TRY_VOID(find_.bind(key.first, key.second));
  ASSAY_TRY(const bool row, find_.next_row());
  std::string files;
  if (row) files = find_.text(0);
  find_.reset();
  if (files.size() % kFile != 0) files.clear();  // not written by this program
  return files;
}

base::Result<std::optional<hash::Digest>> HashCache::find(const hash::FileStamp& stamp) {
  const Key key = key_of(stamp);
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_.size() >= kMostKnown) known_.clear();
    ASSAY_TRY(std::string files, read(key));
    known = known_.emplace(key, std::move(files)).first;
  }
  const std::string_view row = known->second;
  if (row.empty()) return std::nullopt;
  const std::string wanted = text_of(stamp);
  const std::size_t at = place_of(row, std::string_view(wanted).substr(0, kNumber));
  if (at == row.size() || row.substr(at, kStamp) != wanted) return std::nullopt;
  const auto digest = hash::parse_digest(row.substr(at + kStamp, kFile - kStamp));
  return digest ? std::optional(*digest) : std::nullopt;
}

// Each row is read again, because another process may have added to it.
base::Result<void> HashCache::insert(std::span<const HashedFile> files) {
  std::vector<const HashedFile*> order;
  for (const HashedFile& file : files) {
    if (is_settled(file)) order.push_back(&file);
  }
  if (order.empty()) return {};
  ASSAY_TRY(Statement insert,
            database_->prepare("INSERT INTO hash_cache (device, block, files, hashed_ns)"
                               " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (device, block) DO"
                               " UPDATE SET files = ?3, hashed_ns = max(hashed_ns, ?4)"));
  std::ranges::stable_sort(order, {}, [](const HashedFile* file) { return key_of(file->stamp); });
  for (std::size_t at = 0; at < order.size();) {
    const Key key = key_of(order[at]->stamp);
    ASSAY_TRY(std::string row, read(key));
    std::int64_t newest = 0;
    for (; at < order.size() && key_of(order[at]->stamp) == key; ++at) {
      std::string file = text_of(order[at]->stamp);
      const std::size_t place = place_of(row, std::string_view(file).substr(0, kNumber));
      file += order[at]->digest.hex();
      row.replace(place, kFile, file);
      newest = std::max(newest, order[at]->hashed_unix_ns);
    }
    ASSAY_TRY_VOID(insert.bind_integer(1, key.first));
    ASSAY_TRY_VOID(insert.bind_integer(2, key.second));
    ASSAY_TRY_VOID(insert.bind_borrowed(3, row));
    ASSAY_TRY_VOID(insert.bind_integer(4, newest));
    ASSAY_TRY_VOID(insert.run());
    known_.erase(key);
  }
  return {};
}

base::Result<std::int64_t> forget_hashes_before(Database& database, std::int64_t unix_ns) {
  ASSAY_TRY(Statement count, database.prepare("SELECT ifnull(sum(length(files)), 0) FROM hash_cache"
                                              " WHERE hashed_ns < ?1"));
  ASSAY_TRY_VOID(count.bind(unix_ns));
  std::int64_t bytes = 0;
  ASSAY_TRY_VOID(count.each([&](const Statement& row) { bytes = row.integer(0); }));
  ASSAY_TRY(Statement forget, database.prepare("DELETE FROM hash_cache WHERE hashed_ns < ?1"));
  ASSAY_TRY_VOID(forget.bind(unix_ns));
  ASSAY_TRY_VOID(forget.run());
  return bytes / static_cast<std::int64_t>(kFile);
}

}  // namespace assay::store
