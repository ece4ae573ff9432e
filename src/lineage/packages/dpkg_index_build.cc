// build_dpkg_index() of dpkg_index.h: reads info/*.list, status and diversions.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "lineage/packages/dpkg_index.h"
#include "lineage/packages/path_hash.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

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

// A file moved out of the way for another package's: original -> where it is now, by whom.
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

// Paths of one list that are files, as far as the list itself tells: a folder that holds something
// is followed by it.
void add_files(std::string_view list, const std::string& name, std::uint32_t package,
               const std::map<std::string, Diversion, std::less<>>& diversions,
               std::vector<Entry>& entries) {
  std::string_view before;
  const auto add = [&](std::string_view path) {
    if (path.size() < 2) return;
    const auto diverted = diversions.find(path);
    const bool moved = diverted != diversions.end() && diverted->second.by != name;
    entries.push_back(
        {dpkg_path_hash(moved ? std::string_view(diverted->second.to) : path), package});
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

}  // namespace

std::string build_dpkg_index(const fs::path& dpkg, const DpkgIndex::State& state) {
  const Status status = read_status(dpkg);
  const auto diversions = read_diversions(dpkg);
  std::set<std::string> lists;  // in an order that does not depend on the folder's
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
    if (hashes[slot] == entry.hash) continue;  // shared by several: the first has it
    hashes[slot] = entry.hash;
    owners[slot] = entry.package;
  }
  const DpkgIndex::Header header{.magic = kDpkgIndexMagic,
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

}  // namespace assay::lineage
