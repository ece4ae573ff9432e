// A cached index that does not match its own header is discarded and rebuilt.
#include "lineage/packages/dpkg.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x3130'5844'4941'5341U;  // "ASAIDX01"
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325U;

// FNV-1a, continued from `hash`. A collision only lists a package that was not used, which is of no
// use to an attacker.
std::uint64_t hash_more(std::uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

// Finishes a hash by mixing its low bits; never 0, which marks an empty slot.
std::uint64_t hash_end(std::uint64_t hash) {
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93U;
  hash ^= hash >> 32;
  return hash == 0 ? 1 : hash;
}

// /bin, /lib and the like hash as /usr/bin and /usr/lib: they are links on a merged system, and
// dpkg's lists contain either.
std::uint64_t path_hash(std::string_view path) {
  static constexpr std::array<std::string_view, 6> kMerged = {"/bin/",   "/sbin/",  "/lib/",
                                                              "/lib32/", "/lib64/", "/libx32/"};
  std::uint64_t hash = kHashStart;
  for (const std::string_view folder : kMerged) {
    if (path.starts_with(folder)) hash = hash_more(hash, "/usr");
  }
  return hash_end(hash_more(hash, path));
}

constexpr base::Bytes kLargestList{1 << 28};

// "libc6:i386" -> version, from the paragraphs of status; and the architecture of dpkg itself.
struct Status {
  std::map<std::string, std::string> versions;
  std::string native;
};

Status read_status(const fs::path& dpkg) {
  Status status;
  const std::string text = base::read_file(dpkg / "status", kLargestList).value_or(std::string());
  std::string name, version, architecture;
  const auto end_of_paragraph = [&] {
    if (name.empty()) return;
    status.versions[name + ":" + architecture] = version;
    if (name == "dpkg") status.native = architecture;
    name.clear(), version.clear(), architecture.clear();
  };
  base::for_each_line(text, [&](std::string_view line) {
    if (line.empty()) return end_of_paragraph();
    if (line.starts_with("Package: ")) name = line.substr(9);
    if (line.starts_with("Version: ")) version = line.substr(9);
    if (line.starts_with("Architecture: ")) architecture = line.substr(14);
  });
  end_of_paragraph();
  return status;
}

// A diversion: a package's file moved aside for another package's; from original path to new path.
struct Diversion {
  std::string to, by;
};

std::map<std::string, Diversion, std::less<>> read_diversions(const fs::path& dpkg) {
  std::vector<std::string> lines;
  const std::string text =
      base::read_file(dpkg / "diversions", kLargestList).value_or(std::string());
  base::for_each_line(text, [&](std::string_view line) { lines.emplace_back(line); });
  std::map<std::string, Diversion, std::less<>> diversions;
  for (std::size_t i = 0; i + 2 < lines.size(); i += 3) {
    diversions[lines[i]] = {lines[i + 1], lines[i + 2]};
  }
  return diversions;
}

struct Entry {
  std::uint64_t hash;
  std::uint32_t package;
};

// The paths of one list that are files: a non-empty folder is followed by its contents.
void add_files(std::string_view list, const std::string& name, std::uint32_t package,
               const std::map<std::string, Diversion, std::less<>>& diversions,
               std::vector<Entry>& entries) {
  std::string_view before;
  const auto add = [&](std::string_view path) {
    if (path.size() < 2) return;
    const auto diverted = diversions.find(path);
    const bool moved = diverted != diversions.end() && diverted->second.by != name;
    entries.push_back({path_hash(moved ? std::string_view(diverted->second.to) : path), package});
  };
  base::for_each_line(list, [&](std::string_view path) {
    const bool folder = path.size() > before.size() && path.starts_with(before) &&
                        path[before.size()] == '/' && !before.empty();
    if (!folder) add(before);
    before = path;
  });
  add(before);
}

template <class T>
void append(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The bytes of an index, from info/*.list, status and diversions.
std::string build_index(const fs::path& dpkg, const DpkgIndex::State& state) {
  const Status status = read_status(dpkg);
  const auto diversions = read_diversions(dpkg);
  std::set<std::string> lists;  // sorted, so that the index does not depend on directory order
  std::error_code error;
  for (fs::directory_iterator at(dpkg / "info", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".list") lists.insert(at->path().stem().string());
  }

  std::vector<Entry> entries;
  std::vector<std::uint32_t> texts;
  std::string text;
  const auto add_text = [&](std::string_view added) {
    texts.push_back(static_cast<std::uint32_t>(text.size()));
    text += added;
    text += '\0';
  };
  for (const std::string& list : lists) {
    // "libc6:i386.list", but "bash.list".
    const std::string name = list.substr(0, list.find(':'));
    const bool foreign = name != list && list.substr(name.size() + 1) != status.native;
    const auto package = static_cast<std::uint32_t>(texts.size() / 2);
    auto version = status.versions.find(name != list ? list : name + ":" + status.native);
    if (version == status.versions.end()) version = status.versions.find(name + ":all");
    add_text(foreign ? list : name);
    add_text(version == status.versions.end() ? "" : version->second);
    const auto contents = base::read_file(dpkg / "info" / (list + ".list"), kLargestList);
    if (contents) add_files(*contents, name, package, diversions, entries);
  }
  if (text.empty()) text += '\0';

  const std::size_t slots = std::max<std::size_t>(std::bit_ceil(entries.size() * 2), 2);
  std::vector<std::uint64_t> hashes(slots);
  std::vector<std::uint32_t> owners(slots);
  for (const Entry& entry : entries) {
    std::size_t slot = entry.hash & (slots - 1);
    while (hashes[slot] != 0 && hashes[slot] != entry.hash) slot = (slot + 1) & (slots - 1);
    if (hashes[slot] == entry.hash) continue;  // in several packages: the first one wins
    hashes[slot] = entry.hash;
    owners[slot] = entry.package;
  }
  const DpkgIndex::Header header{.magic = kMagic,
                                 .state = state,
                                 .slots = static_cast<std::uint32_t>(slots),
                                 .packages = static_cast<std::uint32_t>(texts.size() / 2),
                                 .text_size = text.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  append(bytes, hashes);
  append(bytes, owners);
  append(bytes, texts);
  return bytes + text;
}

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

// Null if it does not exist, belongs to another user, or is not a regular file.
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

// Every change of dpkg's state makes a new index; a few are kept for containers that share a home.
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
  // One per dpkg, so that a container with the same home does not replace the host's.
  const fs::path path =
      cache /
      fmt::format("dpkg-{:016x}",
                  hash_end(hash_more(kHashStart, fmt::format("{}|{}|{}", dpkg.string(),
                                                             state.lists_ns, state.status_size))));
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
  const auto bytes = std::make_shared<const std::string>(build_index(dpkg, state));
  if (!cache.empty()) {
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    std::ignore = base::replace_file(path, *bytes);  // only a cache
    remove_old(cache);
  }
  index.owner_of_bytes_ = bytes;
  index.use(*bytes);
  return index;
}

bool DpkgIndex::use(std::string_view bytes) {
  const auto* header = reinterpret_cast<const Header*>(bytes.data());
  if (bytes.size() < sizeof(Header) || header->magic != kMagic) return false;
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
  const std::uint64_t wanted = path_hash(path);
  const std::uint64_t mask = header_->slots - 1;
  // Bounded, in case a damaged table has no empty slot.
  for (std::uint64_t i = 0; i <= mask; ++i) {
    const std::uint64_t slot = (wanted + i) & mask;
    if (hashes_[slot] == 0) return std::nullopt;
    if (hashes_[slot] == wanted && owners_[slot] < header_->packages) return owners_[slot];
  }
  return std::nullopt;
}

std::string_view DpkgIndex::text(std::size_t at) const {
  const std::uint32_t offset = texts_[at];
  // text_ ends with a NUL, so every string in it is terminated.
  return offset < text_.size() ? std::string_view(text_.data() + offset) : std::string_view();
}

bool may_be_of_dpkg(std::string_view path) {
  static constexpr std::array<std::string_view, 11> kFolders = {
      "/lib/", "/lib64/", "/lib32/", "/libx32/", "/bin/", "/sbin/",
      "/etc/", "/opt/",   "/var/",   "/boot/",   "/srv/"};
  if (path.starts_with("/usr/")) return !path.starts_with("/usr/local/");
  return std::any_of(kFolders.begin(), kFolders.end(),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

bool DpkgPackages::add(std::string_view path) {
  if (!opened_) {
    opened_ = true;
    index_ = DpkgIndex::open(root_ / "var/lib/dpkg", cache_);
    seen_.resize(index_.packages());
  }
  const auto owner = index_.owner(path);
  if (owner) seen_[*owner] = true;
  return owner.has_value();
}

std::vector<store::Package> DpkgPackages::packages() const {
  std::vector<store::Package> found;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!seen_[i]) continue;
    found.push_back({.manager = "dpkg",
                     .name = std::string(index_.name(i)),
                     .version = std::string(index_.version(i))});
  }
  return found;
}

}  // namespace assay::lineage
