// Facts about paths: symbolic links that the run followed or left, and the network. Files are
// tracked by their real paths, so a link that later leads elsewhere changes what the run would
// read. Folders and names that it asked about: tracker_lookups.cc.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <functional>

#include "base/clock.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {
namespace {

// Bounds memory; programs that open more files than this through links use few links.
constexpr std::size_t kMaxLinkPaths = 10'000;

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

void Tracker::report_facts(Results& results) {
  using Kind = store::PathFact::Kind;
  report_listed(results);
  report_absent(results);
  report_queried(results);
  report_links(results);  // last: a name that was asked about may be a link
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
      // If another program changed it while the run ran, where it led is not known.
      struct stat status {};
      const bool changed = options_.started_file_ns != 0 && ::lstat(link.c_str(), &status) == 0 &&
                           base::nanoseconds(status.st_ctim) > options_.started_file_ns;
      facts.insert({Kind::kFollowedLink, link, changed ? std::string() : target});
    });
  }
  for (const store::PathFact& fact : facts) results.fact(fact);
}

}  // namespace assay::lineage
