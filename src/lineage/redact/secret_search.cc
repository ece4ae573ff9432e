#include "lineage/redact/secret_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/file.h"
#include "lineage/redact/secret_pattern.h"

namespace assay::lineage {
namespace {

constexpr std::int64_t kSearchedAnyway = 1 << 20;
constexpr std::int64_t kMostSearched = 64 << 20;
constexpr std::size_t kPiece = 64 << 10;
constexpr std::size_t kOverlap = 4 << 10;  // longer than any token

// How much of a piece need not be searched again: up to the last newline, since no secret contains
// one. Without a newline, the end of the piece is searched again together with what follows.
std::size_t searched_part(std::string_view piece) {
  const std::size_t newline = piece.rfind('\n');
  const std::size_t overlapping = piece.size() - std::min(piece.size(), kOverlap);
  return newline == std::string_view::npos ? overlapping : std::max(newline + 1, overlapping);
}

}  // namespace

bool contains_secret(std::string_view text) {
  return has_private_key(text) || redact_known_patterns(text) != text;
}

bool file_contains_secret(const std::filesystem::path& path) {
  const auto file = base::open_regular(path);
  if (!file) return false;
  const auto status = base::regular_status(file->get(), path);
  if (!status) return false;
  const bool only_text = status->st_size > kSearchedAnyway;
  std::string piece;
  for (std::int64_t done = 0; done < kMostSearched;) {
    const std::size_t kept = piece.size();
    piece.resize(kept + kPiece);
    const ssize_t got = ::read(file->get(), piece.data() + kept, kPiece);
    piece.resize(kept + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (only_text && piece.find('\0') != std::string::npos) return false;
    if (contains_secret(piece)) return true;
    piece.erase(0, searched_part(piece));
    done += got;
  }
  return false;
}

}  // namespace assay::lineage
