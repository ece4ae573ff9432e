// See dpkg_index.h: opening, keeping and asking. A file that does not fit its own header is thrown
// away and made again.
#include "lineage/packages/dpkg_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "lineage/packages/path_hash.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

std::int64_t changed_ns(const fs::path& path, std::int64_t* size = nullptr) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return 0;
  if (size != nullptr) *size = status.st_size;
  return base::nanoseconds(status.st_mtim);
}

DpkgIndex::State state_of(const fs::path& dpkg) {
  DpkgIndex::State state;
  state.lists_ns = changed_ns(dpkg / "info");
  state.status_ns = changed_ns(dpkg / "status", &state.status_size);
  state.diversions_ns = changed_ns(dpkg / "diversions");
  return state;
}

struct Mapping {
  Mapping(void* at, std::size_t size) : address(at), length(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(address, length); }
  void* address;
  std::size_t length;
};

// Nothing when it is not there, not ours to trust, or not a plain file.
std::shared_ptr<Mapping> map_file(const fs::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || status.st_size == 0) {
    return nullptr;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return nullptr;
  return std::make_shared<Mapping>(address, size);
}

// Every change of dpkg makes a new index; a few are kept for containers that share a home.
void remove_old(const fs::path& cache) {
  constexpr std::size_t kKept = 4;
  std::vector<std::pair<std::int64_t, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator at(cache, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with("dpkg-")) {
      files.emplace_back(changed_ns(at->path()), at->path());
    }
  }
  std::sort(files.rbegin(), files.rend());
  for (std::size_t i = kKept; i < files.size(); ++i) fs::remove(files[i].second, error);
}

}  // namespace

DpkgIndex DpkgIndex::open(const fs::path& dpkg, const fs::path& cache) {
  const State state = state_of(dpkg);
  DpkgIndex index;
  if (state.lists_ns == 0) return index;
  // One per dpkg, so that a container with the same home does not throw away the host's.
  const fs::path path =
      cache /
      fmt::format("dpkg-{:016x}", path_hash(fmt::format("{}|{}|{}", dpkg.string(), state.lists_ns,
                                                        state.status_size)));
  if (!cache.empty()) {
    if (const auto mapped = map_file(path)) {
      index.owner_of_bytes_ = mapped;
      if (index.use({static_cast<const char*>(mapped->address), mapped->length}) &&
          index.header_->state == state) {
        return index;
      }
      index = DpkgIndex();
    }
  }
  const auto bytes = std::make_shared<const std::string>(build_dpkg_index(dpkg, state));
  if (!cache.empty()) {
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    std::ignore = base::replace_file(path, *bytes);  // a cache: next time then
    remove_old(cache);
  }
  index.owner_of_bytes_ = bytes;
  index.use(*bytes);
  return index;
}

bool DpkgIndex::use(std::string_view bytes) {
  const auto* header = reinterpret_cast<const Header*>(bytes.data());
  if (bytes.size() < sizeof(Header) || header->magic != kDpkgIndexMagic) return false;
  const std::uint64_t slots = header->slots;
  const std::uint64_t texts = std::uint64_t{header->packages} * 2;
  const std::uint64_t size = sizeof(Header) + slots * 12 + texts * 4 + header->text_size;
  if (!std::has_single_bit(slots) || slots < 2 || size != bytes.size()) return false;
  if (header->text_size == 0 || bytes.back() != '\0') return false;
  const char* at = bytes.data() + sizeof(Header);
  hashes_ = reinterpret_cast<const std::uint64_t*>(at);
  owners_ = reinterpret_cast<const std::uint32_t*>(at + slots * 8);
  texts_ = reinterpret_cast<const std::uint32_t*>(at + slots * 12);
  text_ = bytes.substr(bytes.size() - header->text_size);
  header_ = header;
  return true;
}

std::size_t DpkgIndex::packages() const {
  return header_ == nullptr ? 0 : header_->packages;
}

std::optional<std::uint32_t> DpkgIndex::owner(std::string_view path) const {
  if (header_ == nullptr) return std::nullopt;
  const std::uint64_t wanted = dpkg_path_hash(path);
  const std::uint64_t mask = header_->slots - 1;
  // Bounded, in case a damaged table has no empty place.
  for (std::uint64_t i = 0; i <= mask; ++i) {
    const std::uint64_t slot = (wanted + i) & mask;
    if (hashes_[slot] == 0) return std::nullopt;
    if (hashes_[slot] == wanted && owners_[slot] < header_->packages) return owners_[slot];
  }
  return std::nullopt;
}

std::string_view DpkgIndex::text(std::size_t at) const {
  const std::uint32_t offset = texts_[at];
  // The text ends with a NUL, so every text in it does.
  return offset < text_.size() ? std::string_view(text_.data() + offset) : std::string_view();
}

std::uint64_t dpkg_path_hash(std::string_view path) {
  static constexpr std::array<std::string_view, 6> kMerged = {"/bin/",   "/sbin/",  "/lib/",
                                                              "/lib32/", "/lib64/", "/libx32/"};
  std::uint64_t hash = kPathHashStart;
  for (const std::string_view folder : kMerged) {
    if (path.starts_with(folder)) hash = path_hash_more(hash, "/usr");
  }
  return path_hash_end(path_hash_more(hash, path));
}

}  // namespace assay::lineage
