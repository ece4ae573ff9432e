#include "lineage/graph/live_stages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/run_dependencies.h"
#include "store/streams.h"

namespace assay::lineage {

std::size_t LiveStages::DigestHash::operator()(const hash::Digest& digest) const {
  std::size_t value = 0;
  std::memcpy(&value, digest.bytes.data(), sizeof value);
  return value;
}

namespace {

// "/a" of "/a/b"; nothing of "/".
std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace

std::string_view extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? std::string_view() : name.substr(dot);
}

LiveStages::LiveStages(std::vector<store::RunRecord> runs,
                       std::vector<std::unordered_set<std::string>> inherited)
    : runs_(std::move(runs)), inherited_(std::move(inherited)) {
  inherited_.resize(runs_.size());
  reads_in_.resize(runs_.size());
  for (const store::RunRecord& run : runs_) {
    needs_.push_back(store::dependencies_of(run));
    handed_down_.push_back(store::handed_down_paths(run.redirects));
    began_.push_back(store::began_file_ns(run));
  }
  for (std::size_t stage = 0; stage < runs_.size(); ++stage) {
    const store::RunRecord& run = runs_[stage];
    for (const store::Input& input : needs_[stage]) {
      readers_[input.path].push_back(stage);
      note_read(stage, input.path);
    }
    for (const store::Output& output : run.outputs) {
      const bool gone = output.status == store::OutputStatus::kDeleted;
      path_changes_[output.path].push_back({stage, gone ? nullptr : &output});
      note_written(output.path);
      if (!gone) makers_in_[folder_of(output.path)].insert(stage);
      if (output.status == store::OutputStatus::kRenamed && !output.from.empty()) {
        path_changes_[output.from].push_back({stage, nullptr});
        note_written(output.from);
      }
      if (!output.blake3 || output.size == 0) continue;
      contents_[*output.blake3].push_back({stage, &output});
    }
    for (const store::PathFact& fact : run.facts) {
      using FactKind = store::PathFact::Kind;
      if (fact.kind == FactKind::kMadeFolder || fact.kind == FactKind::kMadeLink)
        makers_in_[folder_of(fact.path)].insert(stage);
    }
  }
}

bool LiveStages::changes(std::size_t stage, std::string_view path) const {
  const auto found = path_changes_.find(path);
  return found != path_changes_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const PathChange& touch) { return touch.stage == stage; });
}

// Goes up until a folder that is already noted, so each folder is noted once, however many files it
// has.
void LiveStages::note_read(std::size_t stage, std::string_view path) {
  auto& folders = reads_in_[stage];
  std::string_view folder = folder_of(path);
  folders[folder].kinds.insert(extension_of(path.substr(folder.size() + 1)));
  for (folder = folder_of(folder); !folder.empty(); folder = folder_of(folder)) {
    if (std::exchange(folders[folder].below, true)) return;
  }
}

void LiveStages::note_written(std::string_view path) {
  for (path = folder_of(path); !path.empty(); path = folder_of(path)) {
    if (!written_below_.insert(path).second) return;
  }
}

bool LiveStages::is_written_below(std::string_view folder) const {
  return written_below_.contains(folder);
}

const LiveStages::FolderReads& LiveStages::reads_in(std::size_t stage,
                                                    std::string_view folder) const {
  static const FolderReads kNone;
  const auto found = reads_in_[stage].find(folder);
  return found == reads_in_[stage].end() ? kNone : found->second;
}

bool LiveStages::is_inherited(std::size_t stage, const std::string& path) const {
  return inherited_[stage].contains(path);
}

bool LiveStages::reads(std::size_t stage, std::string_view path) const {
  const auto found = readers_.find(path);
  return found != readers_.end() &&
         std::find(found->second.begin(), found->second.end(), stage) != found->second.end();
}

bool LiveStages::is_handed_down(std::size_t stage, const std::string& path) const {
  return handed_down_[stage].contains(path);
}

std::optional<LiveStages::Source> LiveStages::source(std::size_t stage,
                                                     const store::Input& input) const {
  std::optional<Source> best;
  const auto touched = path_changes_.find(input.path);
  if (touched != path_changes_.end()) {
    const bool in_place = changes(stage, input.path);
    for (const PathChange& touch : touched->second) {
      if (touch.stage == stage || touch.output == nullptr) continue;
      if (touch.stage > stage && (in_place || reads(touch.stage, input.path))) continue;
      if (!best || runs_[best->stage].id < runs_[touch.stage].id)
        best = {touch.stage, touch.output};
    }
  }
  return best;
}

std::optional<std::size_t> LiveStages::last_maker(
    std::string_view path, const std::function<bool(std::size_t stage)>& counts) const {
  std::optional<std::size_t> last;
  const auto touched = path_changes_.find(path);
  if (touched == path_changes_.end()) return last;
  for (const PathChange& touch : touched->second) {
    const bool makes = touch.output != nullptr && !touch.output->before;
    if (!makes || reads(touch.stage, path) || !counts(touch.stage)) continue;
    if (!last || runs_[*last].id < runs_[touch.stage].id) last = touch.stage;
  }
  return last;
}

std::optional<std::size_t> LiveStages::maker(std::size_t stage, std::string_view path) const {
  return last_maker(path, [&](std::size_t other) { return other < stage; });
}

std::optional<std::size_t> LiveStages::replacer(std::size_t stage, std::string_view path) const {
  return last_maker(path, [&](std::size_t other) { return runs_[other].id > runs_[stage].id; });
}

std::optional<LiveStages::Source> LiveStages::same_content(std::size_t stage,
                                                           const store::Input& input) const {
  if (!input.blake3) return std::nullopt;
  const auto same = contents_.find(*input.blake3);
  if (same == contents_.end()) return std::nullopt;
  std::optional<Source> newest;
  for (const Source& source : same->second) {
    const store::RunId id = runs_[source.stage].id;
    if (id >= runs_[stage].id || source.output->path == input.path) continue;
    if (!newest || runs_[newest->stage].id < id) newest = source;
  }
  return newest;
}

bool LiveStages::is_removed_by(std::size_t stage, std::string_view path) const {
  const auto found = path_changes_.find(path);
  return found != path_changes_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const PathChange& change) {
           return change.stage == stage && change.output == nullptr;
         });
}

bool LiveStages::is_removed_before(std::size_t stage, std::string_view path) const {
  const auto found = path_changes_.find(path);
  return found != path_changes_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const PathChange& change) {
           return change.stage < stage && change.output == nullptr;
         });
}

bool LiveStages::is_made_again(std::size_t stage, std::string_view path) const {
  const auto last = owner(path);
  if (!last || *last <= stage || !maker(stage, path)) return false;
  return reads(*last, path) || left_at(path) == nullptr;
}

bool LiveStages::makes_link(std::size_t stage, std::string_view path) const {
  const std::vector<store::PathFact>& facts = runs_[stage].facts;
  return std::any_of(facts.begin(), facts.end(), [&](const store::PathFact& fact) {
    return fact.kind == store::PathFact::Kind::kMadeLink && fact.path == path;
  });
}

bool LiveStages::makes_folder(std::size_t stage, std::string_view folder) const {
  const store::RunRecord& run = runs_[stage];
  const std::string below = std::string(folder) + "/";
  return std::any_of(run.facts.begin(), run.facts.end(),
                     [&](const store::PathFact& fact) {
                       return fact.kind == store::PathFact::Kind::kMadeFolder &&
                              fact.path == folder;
                     }) ||
         std::any_of(run.outputs.begin(), run.outputs.end(),
                     [&](const store::Output& output) { return output.path.starts_with(below); });
}

std::vector<std::pair<std::size_t, std::string_view>> LiveStages::lookup_sources(
    std::size_t stage) const {
  std::vector<std::pair<std::size_t, std::string_view>> sources;
  for (const store::PathFact& fact : runs_[stage].facts) {
    using FactKind = store::PathFact::Kind;
    if (fact.kind == FactKind::kListed) {
      const auto makers = makers_in_.find(fact.path);
      if (makers == makers_in_.end()) continue;
      for (const std::size_t maker : makers->second) {
        if (maker < stage) sources.emplace_back(maker, fact.path);
      }
    } else if (fact.kind == FactKind::kQueried) {
      if (const auto by = maker(stage, fact.path)) sources.emplace_back(*by, fact.path);
    }
  }
  return sources;
}

const store::Output* LiveStages::left_at(std::string_view path) const {
  const auto stage = owner(path);
  if (!stage) return nullptr;
  const std::vector<PathChange>& touches = path_changes_.find(path)->second;
  const auto left = std::find_if(touches.begin(), touches.end(), [&](const PathChange& touch) {
    return touch.stage == *stage && touch.output != nullptr;
  });
  return left == touches.end() ? nullptr : left->output;
}

std::optional<std::size_t> LiveStages::next_writer(
    std::size_t stage, std::string_view path,
    const std::function<bool(std::size_t later)>& counts) const {
  const auto found = path_changes_.find(path);
  if (found == path_changes_.end()) return std::nullopt;
  // In the order of the stages' numbers.
  const std::vector<PathChange>& all = found->second;
  auto next =
      std::upper_bound(all.begin(), all.end(), stage,
                       [](std::size_t at, const PathChange& change) { return at < change.stage; });
  next = std::find_if(next, all.end(), [&](const PathChange& change) {
    return change.output != nullptr && counts(change.stage);
  });
  return next == all.end() ? std::nullopt : std::optional(next->stage);
}

std::optional<std::size_t> LiveStages::owner(std::string_view path) const {
  const auto found = path_changes_.find(path);
  if (found == path_changes_.end()) return std::nullopt;
  const auto newest = std::max_element(found->second.begin(), found->second.end(),
                                       [&](const PathChange& a, const PathChange& b) {
                                         return runs_[a.stage].id < runs_[b.stage].id;
                                       });
  return newest->stage;
}

}  // namespace assay::lineage
