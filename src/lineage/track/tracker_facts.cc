// Facts about paths: symbolic links that the run followed or left, folders that it listed, files
// that it looked for and did not find. Files are tracked by their real paths, so a link that later
// leads elsewhere, or a new file, changes what the run would read.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <functional>
#include <memory>

#include "lineage/track/created_folders.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {
namespace {

// Bounds memory; programs that open more files than this through links use few links.
constexpr std::size_t kMaxLinkPaths = 10'000;
// Bounds memory: a compiler looks for every header in every include folder.
constexpr std::size_t kMostAbsent = 2'000;

// Calls `visit` with every symbolic link on the way along `path`, in order, as it is now.
void each_link(
    std::string path,
    const std::function<void(const std::string& link, const std::string& target)>& visit) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string at;
  int links = 0;
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t begin = path.find_first_not_of('/', from);
    if (begin == path.npos) return;
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    from = end;
    if (name == ".") continue;
    if (name == "..") {
      at.resize(at.empty() ? 0 : at.rfind('/'));
      continue;
    }
    const std::string here = at + "/" + name;
    char text[PATH_MAX];
    const ssize_t length = ::readlink(here.c_str(), text, sizeof text);
    if (length <= 0) {
      at = here;
      continue;
    }
    const std::string target(text, static_cast<std::size_t>(length));
    visit(here, target);
    if (++links > kMostLinks) return;
    path = target + path.substr(end);
    if (target.front() == '/') at.clear();
    from = 0;
  }
}

// Whether the entry is a folder or a link to one.
bool is_folder(int folder, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return false;
  struct stat status {};
  return ::fstatat(folder, entry.d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

// Called for every event of a file: compares without copying.
void Tracker::note_link_path(std::string_view given, PathId id) {
  const std::string& folder = paths_.folder_path(paths_[id].folder);
  const std::string_view name = paths_.name(id);
  if (given.size() == folder.size() + 1 + name.size() && given.starts_with(folder) &&
      given.ends_with(name)) {
    return;
  }
  if (!kept(id) || link_paths_.size() >= kMaxLinkPaths) return;
  link_paths_.emplace(given);
}

// The folder may contain links; the last component is the link itself.
void Tracker::note_link(std::string_view path) {
  const ResolvedPath resolved = resolver_.resolve(path);
  if (resolved.folder == 0 || made_links_.size() >= kMaxLinkPaths) return;
  made_links_.insert(text_of(resolved));
}

void Tracker::note_listed(std::string_view folder) {
  const std::unique_ptr<char, void (*)(void*)> real(
      ::realpath(std::string(folder).c_str(), nullptr), std::free);
  if (!real || listed_.size() >= kMaxLinkPaths) return;
  if (filter_.rule(filter_.rule_for_folder(real.get())).keep) ++listed_[real.get()];
}

void Tracker::note_absent(std::string_view path) {
  const ResolvedPath resolved = resolver_.resolve(path);
  if (resolved.folder == 0 || absent_.size() >= kMostAbsent) return;
  std::int32_t& rule = paths_.folder_rule(resolved.folder);
  const std::string& folder = paths_.folder_path(resolved.folder);
  if (rule < 0) rule = filter_.rule_for_folder(folder);
  const RuleId own = filter_.rule_for_name(static_cast<RuleId>(rule), folder, resolved.name);
  if (filter_.rule(own).keep) absent_.insert(text_of(resolved));
}

// A connection shared by several processes is reported by each, with its traffic up to that time.
void Tracker::note_network(std::string_view text, const wire::Stamp* stamp) {
  constexpr std::size_t kMostAddresses = 1'000;
  constexpr std::size_t kMostConnections = 100'000;
  auto found = network_.find(std::string(text));
  if (found == network_.end()) {
    if (network_.size() >= kMostAddresses) return;
    found = network_.emplace(std::string(text), std::map<std::uint64_t, store::Traffic>()).first;
  }
  if (stamp == nullptr || found->second.size() >= kMostConnections) return;
  store::Traffic& traffic = found->second[stamp->inode];
  traffic.received = std::max(traffic.received, stamp->size);
  traffic.sent = std::max(traffic.sent, stamp->mtime_ns);
}

// The names in a folder before the run: those there now, without what the run made and with what it
// removed.
std::optional<std::vector<std::string>> Tracker::names_before(const std::string& folder) {
  constexpr std::size_t kMostNames = 20'000;
  std::vector<std::string> names;
  const FolderId id = paths_.folder(folder);
  for (PathId path = paths_.first_in(id); path != 0; path = paths_[path].next_in_folder) {
    if (paths_[path].before != 0) names.emplace_back(paths_.name(path));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return std::nullopt;
  while (const dirent* entry = ::readdir(open.get())) {
    if (names.size() > 2 * kMostNames) return std::nullopt;
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (is_folder(::dirfd(open.get()), *entry)) {
      if (!created_at_or_after(folder + "/" + name, options_.started_file_ns))
        names.push_back(name + "/");
      continue;
    }
    const PathId path = paths_.find(id, name);
    const bool made = path != 0 && paths_[path].now != 0 && paths_[path].before == 0;
    if (!made && (made_links_.empty() || !made_links_.contains(folder + "/" + name)))
      names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kMostNames) return std::nullopt;
  return names;
}

void Tracker::report_facts(Results& results) {
  using Kind = store::PathFact::Kind;
  report_links(results);
  for (const auto& [folder, times] : listed_) {
    if (created_at_or_after(folder, options_.started_file_ns)) continue;
    auto names = names_before(folder);
    if (!names) continue;
    // Python lists what it may import from.
    const bool importable = std::any_of(names->begin(), names->end(), [](const std::string& name) {
      return name.ends_with(".py") || name.ends_with(".pyc");
    });
    if (importable && times < 2) continue;
    results.fact({.kind = Kind::kListed, .path = folder, .names = *std::move(names)});
  }
  for (const auto& [address, connections] : network_) {
    store::Traffic all;
    for (const auto& [connection, traffic] : connections) {
      all.received += traffic.received;
      all.sent += traffic.sent;
    }
    results.fact({.kind = Kind::kNetwork,
                  .path = address,
                  .target = connections.empty() ? std::string() : store::to_target(all)});
  }
  for (const std::string& path : absent_) {
    struct stat status {};
    // Programs look for settings in many places outside the project, so there a missing file counts
    // only in folders where the run used other files.
    const ResolvedPath at = resolver_.from_canonical(path);
    const bool in_project = filter_.rule(filter_.rule_for(path)).name == "project";
    if (!in_project && paths_.first_in(at.folder) == 0) continue;
    // It exists now: the run made it, or it is unknown when it appeared.
    if (::lstat(path.c_str(), &status) == 0) continue;
    results.fact({.kind = Kind::kAbsent, .path = path});
  }
}

void Tracker::report_links(Results& results) {
  using Kind = store::PathFact::Kind;
  std::set<store::PathFact> facts;
  for (const std::string& link : made_links_) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(link.c_str(), text, sizeof text);
    if (length <= 0 || !filter_.rule(filter_.rule_for(link)).keep) continue;
    facts.insert({Kind::kMadeLink, link, std::string(text, static_cast<std::size_t>(length))});
  }
  for (const std::string& way : link_paths_) {
    each_link(way, [&](const std::string& link, const std::string& target) {
      if (made_links_.contains(link) || !filter_.rule(filter_.rule_for(link)).keep) return;
      facts.insert({Kind::kFollowedLink, link, target});
    });
  }
  for (const store::PathFact& fact : facts) results.fact(fact);
}

}  // namespace assay::lineage
