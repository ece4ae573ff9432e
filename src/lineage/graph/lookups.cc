#include "lineage/graph/lookups.h"

#include <set>
#include <string_view>

namespace assay::lineage {
namespace {

using store::PathFact;

// One folder that the stage listed, as it was then and as it is now.
class ListedFolder {
 public:
  ListedFolder(const LiveStages& stages, std::size_t stage, const PathFact& fact,
               const DiskQueries& disk)
      : stages_(stages),
        stage_(stage),
        fact_(fact),
        disk_(disk),
        reads_(stages.reads_in(stage, fact.path)) {}

  void compare(const std::vector<std::string>& now, Freshness& found) const {
    const std::set<std::string_view> were(fact_.names.begin(), fact_.names.end());
    const std::set<std::string_view> are(now.begin(), now.end());
    First added;
    First gone;
    for (const std::string& name : now) {
      if (!were.contains(name)) note_added(name, added);
    }
    for (const std::string& name : fact_.names) {
      if (!are.contains(name)) note_gone(name, gone);
    }
    report(added, Cause::kListedMore, found);
    report(gone, Cause::kListedGone, found);
  }

 private:
  // The first name of each weight: one of each is enough.
  struct First {
    std::string reason, doubt, own;
  };

  // The path of "a", "b/" or, of a link, "a/@".
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return fact_.path + "/" + name.substr(0, name.find('/'));
  }

  [[nodiscard]] bool counts(const std::string& name) const {
    return !disk_.counts ||
           disk_.counts(name.ends_with('/') ? fact_.path + "/" + name : path_of(name));
  }

  // Whether the stage itself makes or removes the name.
  [[nodiscard]] bool is_own(const std::string& name) const {
    const std::string path = path_of(name);
    const bool makes_link = stages_.makes_link(stage_, path);
    if (name.ends_with('/')) return makes_link || stages_.makes_folder(stage_, path);
    return makes_link || stages_.changes(stage_, path);
  }

  [[nodiscard]] bool reads_nothing() const { return reads_.kinds.empty() && !reads_.below; }

  // Whether the stage would read the file, too: it read others like it in this folder, or none at
  // all, and counted or passed on the names.
  [[nodiscard]] bool would_read(const std::string& name) const {
    if (reads_nothing()) return true;
    const std::string_view bare = std::string_view(name).substr(0, name.find('/'));
    return name.ends_with('/') ? reads_.below
                               : reads_.kinds.contains(extension_of(bare)) ||
                                     (bare.size() < name.size() && reads_.below);
  }

  void note(const std::string& name, First& first) const {
    if (fact_.target == store::kListedToFind && (reads_nothing() || !would_read(name))) return;
    // The stage made the folder itself, and may make it anew.
    const bool certain = would_read(name) && fact_.target != store::kListedOwn;
    std::string& place = certain ? first.reason : first.doubt;
    if (place.empty()) place = path_of(name);
  }

  void note_added(const std::string& name, First& first) const {
    if (!counts(name)) return;
    if (is_own(name)) {
      // Made after the folder was listed for its names: another run would find it there. Not in a
      // folder of its own, which a stage lists before it fills it.
      const bool for_names = fact_.target.empty();
      if (!name.ends_with('/') && for_names && would_read(name) && first.own.empty()) {
        first.own = path_of(name);
      }
      return;
    }
    // An earlier stage removes it before this one would see it.
    if (!stages_.is_removed_before(stage_, path_of(name))) note(name, first);
  }

  void note_gone(const std::string& name, First& first) const {
    if (!counts(name)) return;
    const std::string path = path_of(name);
    // Files that it read are missing inputs, and those that earlier stages make are missing outputs
    // of theirs.
    if (is_own(name) || stages_.reads(stage_, path) || stages_.maker(stage_, path)) return;
    note(name, first);
  }

  static void report(const First& first, Cause cause, Freshness& found) {
    if (!first.reason.empty()) found.reasons.push_back({cause, first.reason});
    if (!first.doubt.empty()) found.doubts.push_back({cause, first.doubt});
    if (!first.own.empty()) found.doubts.push_back({Cause::kListedOwn, first.own});
  }

  const LiveStages& stages_;
  const std::size_t stage_;
  const PathFact& fact_;
  const DiskQueries& disk_;
  const LiveStages::FolderReads& reads_;
};

// "a file of 12 bytes", "a file", "a folder" of a kQueried fact's target.
std::string described(const std::string& state) {
  if (state.starts_with("file ")) return "a file of " + state.substr(5) + " bytes";
  if (state == "other") return "neither a file nor a folder";
  return "a " + state;
}

}  // namespace

void check_listed(const LiveStages& stages, std::size_t stage, const PathFact& fact,
                  const DiskQueries& disk, Freshness& found) {
  if (!disk.names) return;
  if (const auto now = disk.names(fact.path)) {
    ListedFolder(stages, stage, fact, disk).compare(*now, found);
    if (fact.target == store::kListedMeanwhile) {
      found.doubts.push_back({.cause = Cause::kQueriedChanged,
                              .path = fact.path,
                              .now = "was changed by another program while it ran"});
    }
  } else if (fact.target != store::kListedOwn && disk.exists && !disk.exists(fact.path) &&
             !stages.is_written_below(fact.path)) {
    // A missing folder of outputs is reported as missing outputs.
    found.reasons.push_back({Cause::kListedGone, fact.path});
  }
}

void check_absent(const LiveStages& stages, std::size_t stage, const PathFact& fact,
                  const DiskQueries& disk, Freshness& found) {
  if (!disk.exists || stages.changes(stage, fact.path) || !disk.exists(fact.path)) return;
  if (stages.is_removed_before(stage, fact.path)) return;
  found.reasons.push_back({Cause::kAppeared, fact.path});
}

void check_queried(const LiveStages& stages, std::size_t stage, const PathFact& fact,
                   const DiskQueries& disk, Freshness& found) {
  if (!disk.state || stages.changes(stage, fact.path) || stages.reads(stage, fact.path)) return;
  if (stages.is_made_again(stage, fact.path)) return;
  const auto now = disk.state(fact.path, fact.target.starts_with("file "));
  if (now == fact.target) return;
  found.reasons.push_back({now ? Cause::kQueriedChanged : Cause::kQueriedGone, fact.path});
  if (!now) return;
  found.reasons.back().now =
      fact.target == store::kQueriedMeanwhile
          ? "was changed while it ran"
          : "is " + described(*now) + " now, and was " + described(fact.target);
}

}  // namespace assay::lineage
