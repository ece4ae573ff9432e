// What the run asked about without opening it: folders that it listed, names that it looked for and
// did not find, and project files of which it was told that they exist, what they are, how large or
// where they lead. If any of this is different in a later run, the program may behave differently.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "base/clock.h"
#include "lineage/track/created_folders.h"
#include "lineage/track/tracker.h"
#include "observe/collect/process/interpreter.h"

namespace assay::lineage {

namespace {

using store::PathFact;

// These bound memory. What is asked beyond them is not known, and so the run is not complete.
constexpr std::size_t kMostFolders = 100'000;
constexpr std::size_t kMostNames = 200'000;
constexpr std::size_t kMostListed = 200'000;  // names in one folder

bool is_python_script(const std::string& path) {
  std::ifstream script(path);
  std::string first(128, '\0');
  script.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(script.gcount()));
  return first.starts_with("#!") && first.substr(0, first.find('\n')).find("python") != first.npos;
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Git looks at every file of the checkout, whose state is recorded by commit and diff.
bool is_git(std::string_view program) {
  const std::string_view name = file_name(program);
  return name == "git" || name.starts_with("git-");
}

// Whether the entry is a folder or a link to one.
bool is_folder(int folder, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return false;
  struct stat status {};
  return ::fstatat(folder, entry.d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

bool is_module(std::string_view name) {
  return name.ends_with(".py") || name.ends_with(".pyc");
}

}  // namespace

// Python lists each folder that it imports from, by its absolute path.
bool Tracker::is_python(pid_t process) {
  const std::string_view program = processes_.program_of(process);
  const std::string_view name = file_name(program);
  if (name.starts_with("python") || name.starts_with("pypy")) return true;
  const auto [known, is_new] = python_scripts_.try_emplace(std::string(program), false);
  if (is_new) known->second = is_python_script(known->first);
  return known->second;
}

// Programs also open folders to come back to them (find) or to sync them (databases): then without
// O_DIRECTORY. Those that list them open them like that only if they do not use the C library (Go).
// The gate sees no others, and the shim sees what is listed.
bool Tracker::is_listing(const collect::Event& event) {
  if ((event.flags & wire::flag::kPlainOpen) == 0 || event.source == wire::Source::kGate) {
    return true;
  }
  const std::string program(processes_.program_of(event.process));
  const auto [known, is_new] = static_programs_.try_emplace(program, false);
  if (is_new) {
    const collect::ProgramInterpreter loader = collect::interpreter_of(program);
    known->second = loader.kind == collect::ProgramKind::kElf && loader.path.empty();
  }
  return known->second;
}

void Tracker::note_listed(const collect::Event& event) {
  const std::unique_ptr<char, void (*)(void*)> real(
      ::realpath(std::string(event.path).c_str(), nullptr), std::free);
  if (!real || !filter_.rule(filter_.rule_for_folder(real.get())).keep) return;
  if (!is_listing(event)) return;
  if (listed_.size() >= kMostFolders) {
    return missed_.add("names", "more folders were listed than are recorded");
  }
  Listing& listing = listed_[real.get()];
  if (listing.by_others) return;
  listing.made = made_in(real.get());
  if (is_python(event.process)) {
    if ((event.flags & wire::flag::kRelative) != 0) {
      listing.by_python = true;
      return;
    }
    struct stat status {};
    const bool there = ::stat(real.get(), &status) == 0;
    const std::int64_t changed_ns = there ? base::nanoseconds(status.st_mtim) : 0;
    int& times = listing.by_imports[event.process];
    if (times == 0 || changed_ns == listing.changed_ns) ++times;
    listing.changed_ns = changed_ns;
    return;
  }
  const std::string_view name = file_name(processes_.program_of(event.process));
  const bool make = name == "make" || name == "gmake";
  (make ? listing.by_make : listing.by_others) = true;
}

// What the run has made in the folder so far.
std::set<std::string> Tracker::made_in(const std::string& folder) {
  std::set<std::string> made;
  const FolderId id = paths_.folder(folder);
  for (PathId path = paths_.first_in(id); path != 0; path = paths_[path].next_in_folder) {
    if (paths_[path].now != 0 && paths_[path].before == 0) made.emplace(paths_.name(path));
  }
  const std::string below = folder + "/";
  for (auto link = made_links_.lower_bound(below);
       link != made_links_.end() && link->starts_with(below); ++link) {
    if (link->find('/', below.size()) == link->npos) made.insert(link->substr(below.size()));
  }
  return made;
}

void Tracker::note_absent(std::string_view path) {
  const ResolvedPath resolved = resolver_.resolve(path);
  if (resolved.folder == 0) return;
  std::int32_t& rule = paths_.folder_rule(resolved.folder);
  const std::string& folder = paths_.folder_path(resolved.folder);
  if (rule < 0) rule = filter_.rule_for_folder(folder);
  const RuleId own = filter_.rule_for_name(static_cast<RuleId>(rule), folder, resolved.name);
  if (!filter_.rule(own).keep) return;
  if (absent_.size() >= kMostNames) {
    return missed_.add("names", "more names were looked for than are recorded");
  }
  absent_.insert(text_of(resolved));
}

void Tracker::note_queried(const collect::Event& event) {
  std::string_view path = event.path;
  while (path.ends_with("/.")) path.remove_suffix(2);
  while (path.ends_with('/')) path.remove_suffix(1);
  const ResolvedPath resolved = resolver_.resolve(path);
  if (resolved.folder == 0) return;
  const std::string& folder = paths_.folder_path(resolved.folder);
  if (!is_inside(folder, options_.project) || options_.project.empty()) return;
  std::int32_t& rule = paths_.folder_rule(resolved.folder);
  if (rule < 0) rule = filter_.rule_for_folder(folder);
  if (!filter_.rule(static_cast<RuleId>(rule)).keep) return;
  if (is_git(processes_.program_of(event.process))) return;
  if (queried_.size() >= kMostNames) {
    return missed_.add("names", "more files were asked about than are recorded");
  }
  std::string text = text_of(resolved);
  // Links on the way count, too.
  if (text != path && text != normalized(path)) link_paths_.emplace(path);
  bool& size = queried_[std::move(text)];
  size = size || (event.flags & wire::flag::kSize) != 0;
}

bool Tracker::kept_in_project(const std::string& path) {
  return is_inside(path, options_.project) && filter_.rule(filter_.rule_for(path)).keep;
}

Tracker::PythonSearch Tracker::python_search() const {
  constexpr std::string_view kCompiled = "/__pycache__";
  PythonSearch python{.folders = {options_.directory}};
  for (PathId id = 1; id < paths_.end(); ++id) {
    if ((paths_[id].flags & path_flag::kRead) == 0 || !is_module(paths_.name(id))) continue;
    std::string folder = paths_.folder_path(paths_[id].folder);
    if (folder.ends_with(kCompiled)) folder.resize(folder.size() - kCompiled.size());
    python.metadata = python.metadata || folder.ends_with("/importlib/metadata") ||
                      folder.ends_with("/pkg_resources");
    python.folders.insert(std::move(folder));
  }
  return python;
}

Tracker::Purpose Tracker::purpose_of(const std::string& folder, const Listing& listing,
                                     const PythonSearch& python) {
  if (listing.by_others) return Purpose::kNames;
  const bool searched = python.folders.contains(folder);
  const bool again = std::ranges::any_of(listing.by_imports,
                                         [](const auto& process) { return process.second > 1; });
  const bool itself = listing.by_python || again || (!listing.by_imports.empty() && !searched);
  if (itself) return searched && python.metadata ? Purpose::kLookup : Purpose::kNames;
  return listing.by_make ? Purpose::kLookup : Purpose::kImport;
}

// Whether another program put the name there while the run ran. (Who made a folder is not known.)
bool Tracker::is_by_others(int folder, const dirent& entry, PathId path) const {
  if (path != 0 && (paths_[path].before != 0 || paths_[path].now != 0)) return false;
  struct stat status {};
  return ::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         !S_ISDIR(status.st_mode) && base::nanoseconds(status.st_ctim) > options_.started_file_ns;
}

// Whether the run made, moved or removed names in the folder, as far as is known.
bool Tracker::changes_names_in(const std::string& folder) {
  const FolderId id = paths_.folder(folder);
  for (PathId path = paths_.first_in(id); path != 0; path = paths_[path].next_in_folder) {
    const Path& one = paths_[path];
    if (one.before == 0 || one.now != one.before || (one.flags & path_flag::kNamed) != 0) {
      return true;
    }
  }
  const auto link = made_links_.lower_bound(folder + "/");
  return link != made_links_.end() && link->starts_with(folder + "/");
}

// The names that the run saw in a folder: those before the run, which are those there now without
// what it or others made and with what it removed, and what it had made when it listed the folder.
std::optional<Tracker::ListedNames> Tracker::names_listed(const std::string& folder,
                                                          const Listing& listing) {
  ListedNames listed{.names = {listing.made.begin(), listing.made.end()}};
  std::vector<std::string>& names = listed.names;
  const FolderId id = paths_.folder(folder);
  for (PathId path = paths_.first_in(id); path != 0; path = paths_[path].next_in_folder) {
    if (paths_[path].before != 0) names.emplace_back(paths_.name(path));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return std::nullopt;
  struct stat status {};
  const bool changed = options_.started_file_ns != 0 &&
                       ::fstat(::dirfd(open.get()), &status) == 0 &&
                       base::nanoseconds(status.st_mtim) > options_.started_file_ns;
  bool explained = !changed || changes_names_in(folder);
  while (const dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool is_link = entry->d_type == DT_LNK;
    const PathId path = paths_.find(id, name);
    if (changed && !made_links_.contains(folder + "/" + name) &&
        is_by_others(::dirfd(open.get()), *entry, path)) {
      explained = true;
      continue;
    }
    if (is_folder(::dirfd(open.get()), *entry)) {
      if (changed && !explained) {
        explained = created_at_or_after(folder + "/" + name, options_.started_file_ns);
      }
      if (is_link) names.push_back(name + store::kListedLink);
      names.push_back(name + "/");
      continue;
    }
    const bool made = path != 0 && paths_[path].now != 0 && paths_[path].before == 0;
    if (made || (is_link && made_links_.contains(folder + "/" + name))) continue;
    if (is_link) names.push_back(name + store::kListedLink);
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kMostListed) {
    missed_.add("names", folder + " holds more names than are recorded");
    return std::nullopt;
  }
  listed.others_changed = !explained;
  return listed;
}

void Tracker::report_listed(Results& results) {
  if (listed_.empty()) return;
  const PythonSearch python = python_search();
  for (const auto& [folder, listing] : listed_) {
    const Purpose purpose = purpose_of(folder, listing, python);
    if (purpose == Purpose::kImport) continue;
    auto listed = names_listed(folder, listing);
    if (!listed) continue;
    std::string how;
    if (listed->others_changed) how = store::kListedMeanwhile;
    if (created_at_or_after(folder, options_.started_file_ns)) how = store::kListedOwn;
    if (purpose == Purpose::kLookup) how = store::kListedToFind;
    results.fact({.kind = PathFact::Kind::kListed,
                  .path = folder,
                  .target = std::move(how),
                  .names = std::move(listed->names)});
  }
}

void Tracker::report_absent(Results& results) {
  for (const std::string& path : absent_) {
    struct stat status {};
    // Programs look for settings in many places outside the project, so there a missing file counts
    // only in folders where the run used other files.
    const ResolvedPath at = resolver_.from_canonical(path);
    if (!kept_in_project(path) && paths_.first_in(at.folder) == 0) continue;
    // It exists now: the run made it, or another program did while the run ran. Who made anything
    // else than a file or link is not known.
    if (::lstat(path.c_str(), &status) == 0) {
      const bool is_known = S_ISREG(status.st_mode) || S_ISLNK(status.st_mode);
      if (!is_known || !options_.live || is_changed_by_run(path)) continue;
    }
    results.fact({.kind = PathFact::Kind::kAbsent, .path = path});
  }
}

// Whether what is at the path is an input or output of the run, which says more than that it
// exists.
bool Tracker::is_changed_by_run(const std::string& path) {
  if (made_links_.contains(path)) return true;
  const ResolvedPath at = resolver_.from_canonical(path);
  const PathId id = paths_.find(at.folder, at.name);
  if (id == 0) return false;
  const Path& known = paths_[id];
  if ((known.flags & path_flag::kRead) != 0 || known.now != known.before) return true;
  return known.now != 0 && files_[known.now].has(file_flag::kWritten);
}

void Tracker::report_queried(Results& results) {
  for (const auto& [path, size] : queried_) {
    if (is_changed_by_run(path) || !kept_in_project(path)) continue;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) continue;  // the run, or another program, removed it
    if (S_ISLNK(status.st_mode)) {
      link_paths_.insert(path);
      if (::stat(path.c_str(), &status) != 0) continue;
    }
    const bool folder = S_ISDIR(status.st_mode);
    if (folder && created_at_or_after(path, options_.started_file_ns)) continue;
    // If another program changed it meanwhile, what the run was told is not known.
    const bool changed = !folder && options_.started_file_ns != 0 &&
                         base::nanoseconds(status.st_ctim) > options_.started_file_ns;
    results.fact({.kind = PathFact::Kind::kQueried,
                  .path = path,
                  .target = changed ? std::string(store::kQueriedMeanwhile)
                                    : store::queried_state(status, size)});
  }
}

}  // namespace assay::lineage
