#include "lineage/graph/staleness.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lineage/graph/lookups.h"

namespace assay::lineage {
namespace {

using store::Input;
using store::Output;
using store::RunRecord;

// Whether only an earlier run of the stage read or left the file, and it had already changed when
// the current run began. The current run did not need it, so running the stage again would change
// nothing.
bool is_no_longer_needed(const LiveStages& stages, std::size_t stage, const std::string& path,
                         const DiskQueries& disk) {
  if (!stages.is_inherited(stage, path) || !disk.changed_unix_ns) return false;
  const auto changed = disk.changed_unix_ns(path);
  return changed && *changed < stages.began_file_ns(stage);
}

void check_input(const LiveStages& stages, std::size_t stage, const Input& input,
                 const DiskQueries& disk, std::vector<Reason>& reasons) {
  const auto source = stages.source(stage, input);
  const bool in_place = stages.changes(stage, input.path);
  if (source) {
    const RunRecord& producer = stages.runs()[source->stage];
    if (in_place && producer.id > stages.runs()[stage].id) {
      reasons.push_back({Cause::kChangeUndone, input.path, producer.stage});
      return;
    }
    if (input.blake3 && source->output->blake3 && *input.blake3 != *source->output->blake3) {
      if (stages.is_inherited(stage, input.path) && producer.id < stages.runs()[stage].id) return;
      reasons.push_back({Cause::kInputRemade, input.path, producer.stage});
      return;
    }
  }
  if (!input.blake3 || in_place || stages.is_made_again(stage, input.path)) return;
  switch (disk.content(input.path, *input.blake3, input.size)) {
    case OnDisk::kSame:
      break;
    case OnDisk::kChanged:
      if (is_no_longer_needed(stages, stage, input.path, disk)) break;
      reasons.push_back({Cause::kInputChanged, input.path});
      // If a stage makes the file, the reason says which other run changed it.
      if (source && disk.writer) reasons.back().writer = disk.writer(input.path);
      break;
    case OnDisk::kMissing:
      reasons.push_back({Cause::kInputMissing, input.path});
      break;
  }
}

// Which stages use what a stage makes, and a path that they read, list or ask about.
using Feeds = std::vector<std::vector<std::pair<std::size_t, std::string_view>>>;

Feeds feeds_of(const LiveStages& stages) {
  Feeds feeds(stages.runs().size());
  for (std::size_t stage = 0; stage < feeds.size(); ++stage) {
    std::set<std::size_t> seen;
    for (const Input& input : stages.needs(stage)) {
      const auto source = stages.source(stage, input);
      if (source && seen.insert(source->stage).second)
        feeds[source->stage].push_back({stage, input.path});
    }
    for (const auto& [source, path] : stages.lookup_sources(stage)) {
      if (seen.insert(source).second) feeds[source].push_back({stage, path});
    }
  }
  return feeds;
}

// Of stages that write the same file.
class OverwriteOrder {
 public:
  explicit OverwriteOrder(Feeds feeds)
      : feeds_(std::move(feeds)), sources_(feeds_.size()), needed_(feeds_.size()) {
    for (std::size_t stage = 0; stage < feeds_.size(); ++stage) {
      for (const auto& [reader, input] : feeds_[stage]) sources_[reader].push_back(stage);
    }
  }

  [[nodiscard]] const Feeds& feeds() const { return feeds_; }

  // Whether `first` has the lower number and does not depend on `second`: then `second` overwrites
  // what it wrote.
  bool is_overwritten_by(std::size_t first, std::size_t second) {
    return first < second && !needed_by(first)[second];
  }

 private:
  // For each stage, whether this one depends on it.
  const std::vector<bool>& needed_by(std::size_t stage) {
    std::vector<bool>& needed = needed_[stage];
    if (!needed.empty()) return needed;
    needed.resize(feeds_.size());
    std::vector<std::size_t> todo = {stage};
    while (!todo.empty()) {
      const std::size_t reader = todo.back();
      todo.pop_back();
      for (const std::size_t source : sources_[reader]) {
        if (needed[source]) continue;
        needed[source] = true;
        todo.push_back(source);
      }
    }
    return needed;
  }

  Feeds feeds_;
  std::vector<std::vector<std::size_t>> sources_;  // the feeds, from the reader
  std::vector<std::vector<bool>> needed_;          // of the stages that were asked about
};

// What the file is compared with what the stage left there. Lines that follow in a file that was
// handed down are of other programs, which had it open as well: the log of a job.
OnDisk left_on_disk(const LiveStages& stages, std::size_t stage, const Output& output,
                    const DiskQueries& disk) {
  const OnDisk now = disk.content(output.path, *output.blake3, output.size);
  if (now != OnDisk::kChanged || !stages.is_handed_down(stage, output.path)) return now;
  const bool begins = disk.begins && disk.begins(output.path, *output.blake3, output.size);
  return begins ? OnDisk::kSame : now;
}

void check_output(const LiveStages& stages, OverwriteOrder& order, std::size_t stage,
                  const Output& output, const DiskQueries& disk, std::vector<Reason>& reasons) {
  if (!output.blake3) return;
  if (const std::size_t owner = *stages.owner(output.path); owner != stage) {
    // A change in place is checked with the inputs.
    if (stages.left_at(output.path) != nullptr && !stages.reads(stage, output.path) &&
        order.is_overwritten_by(owner, stage)) {
      reasons.push_back({Cause::kChangeUndone, output.path, stages.runs()[owner].stage});
    }
    return;
  }
  switch (left_on_disk(stages, stage, output, disk)) {
    case OnDisk::kSame:
      break;
    case OnDisk::kChanged:
      if (is_no_longer_needed(stages, stage, output.path, disk)) break;
      reasons.push_back({Cause::kOutputChanged, output.path});
      if (disk.writer) reasons.back().writer = disk.writer(output.path);
      break;
    case OnDisk::kMissing:
      reasons.push_back({Cause::kOutputMissing, output.path});
      break;
  }
}

void check_link(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                const DiskQueries& disk, bool made, std::vector<Reason>& reasons) {
  if (!disk.link) return;
  const std::optional<std::string> now = disk.link(fact.path);
  if (now == fact.target) return;
  if (!made && stages.owner(fact.path)) return;  // a stage has put a file there
  if (is_no_longer_needed(stages, stage, fact.path, disk)) return;
  reasons.push_back({made ? Cause::kMadeLinkMoved : Cause::kLinkMoved, fact.path});
  reasons.back().now = now.value_or("");
  if (!now && disk.exists && disk.exists(fact.path)) {
    reasons.back().instead = disk.names && disk.names(fact.path) ? "folder" : "file";
  }
}

// Another build of the same version is not a reason: distributions rebuild packages for security
// fixes. If the version is unknown, another build counts as another version. For an interpreter
// that a stage makes (in a virtual environment), staleness follows from that stage.
void check_interpreter(const LiveStages& stages, const store::PathFact& fact,
                       const DiskQueries& disk, std::vector<Reason>& reasons) {
  const auto then = interpreter_of(fact);
  if (!then || !disk.interpreter || stages.owner(fact.path)) return;
  const auto now = disk.interpreter(fact.path);
  const bool known = !then->version.empty() || then->build.empty();
  if (now && now->language == then->language && now->version == then->version &&
      (known || now->build == then->build)) {
    return;
  }
  reasons.push_back({Cause::kInterpreter, fact.path});
  if (!now) return;
  const auto text = [](const Interpreter& one) {
    return one.language + (one.version.empty() ? ", build " + one.build : " " + one.version);
  };
  reasons.back().now = text(*now) + " now, and was " + text(*then);
}

void check_fact(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                const DiskQueries& disk, Freshness& found) {
  using FactKind = store::PathFact::Kind;
  switch (fact.kind) {
    case FactKind::kMadeFolder:
    case FactKind::kNetwork:
    case FactKind::kBegan:
      return;
    case FactKind::kInterpreter:
      return check_interpreter(stages, fact, disk, found.reasons);
    case FactKind::kFollowedLink:
      return check_link(stages, stage, fact, disk, false, found.reasons);
    case FactKind::kMadeLink:
      return check_link(stages, stage, fact, disk, true, found.reasons);
    case FactKind::kAbsent:
      return check_absent(stages, stage, fact, disk, found);
    case FactKind::kQueried:
      return check_queried(stages, stage, fact, disk, found);
    case FactKind::kListed:
      return check_listed(stages, stage, fact, disk, found);
  }
}

// What keeps the stage from being called fresh although nothing has changed.
void add_own_doubts(const LiveStages& stages, std::size_t stage, Freshness& found) {
  const RunRecord& run = stages.runs()[stage];
  if (!run.complete) {
    const bool told = !run.missed.empty();
    found.doubts.push_back({.cause = Cause::kIncomplete,
                            .now = told ? run.missed.front().text : "its run is not complete"});
  }
  for (const Input& input : stages.needs(stage)) {
    if (!stages.changes(stage, input.path)) continue;
    if (stages.is_removed_by(stage, input.path) || stages.maker(stage, input.path)) continue;
    found.doubts.push_back({Cause::kChangesAgain, input.path});
    return;
  }
}

// Adds a reason for every stage fed by a stale one, or that is the next to overwrite a file of it,
// until nothing changes: those that overwrite it after that follow from the next one. Stages can
// feed each other in cycles, by path: each pair is visited once.
void propagate(const LiveStages& stages, OverwriteOrder& order, std::vector<Freshness>& found) {
  std::vector<std::size_t> todo;
  for (std::size_t stage = 0; stage < found.size(); ++stage) {
    if (!found[stage].reasons.empty()) todo.push_back(stage);
  }
  while (!todo.empty()) {
    const std::size_t stale = todo.back();
    todo.pop_back();
    std::set<std::size_t> fed;
    const auto add = [&](std::size_t stage, std::string_view path) {
      if (!fed.insert(stage).second) return;
      std::vector<Reason>& reasons = found[stage].reasons;
      if (reasons.empty()) todo.push_back(stage);
      reasons.push_back({Cause::kUpstream, std::string(path), stages.runs()[stale].stage});
    };
    for (const auto& [stage, path] : order.feeds()[stale]) add(stage, path);
    for (const Output& output : stages.runs()[stale].outputs) {
      if (output.status == store::OutputStatus::kDeleted) continue;
      const auto next = stages.next_writer(stale, output.path, [&](std::size_t later) {
        return order.is_overwritten_by(stale, later);
      });
      if (next) add(*next, output.path);
    }
  }
}

}  // namespace

std::vector<Freshness> freshness(const LiveStages& stages, const DiskQueries& disk) {
  std::vector<Freshness> found(stages.runs().size());
  OverwriteOrder order(feeds_of(stages));
  for (std::size_t stage = 0; stage < found.size(); ++stage) {
    const RunRecord& run = stages.runs()[stage];
    std::vector<Reason>& reasons = found[stage].reasons;
    for (const Input& input : stages.needs(stage)) check_input(stages, stage, input, disk, reasons);
    for (const Output& output : run.outputs) {
      check_output(stages, order, stage, output, disk, reasons);
    }
    for (const store::PathFact& fact : run.facts) {
      check_fact(stages, stage, fact, disk, found[stage]);
    }
    add_own_doubts(stages, stage, found[stage]);
  }
  propagate(stages, order, found);
  return found;
}

std::vector<Reason> replaced_outputs(const LiveStages& stages, std::size_t stage,
                                     const DiskQueries& disk) {
  std::vector<Reason> replaced;
  for (const Output& output : stages.runs()[stage].outputs) {
    if (!output.blake3) continue;
    const auto by = stages.replacer(stage, output.path);
    if (!by || disk.content(output.path, *output.blake3, output.size) == OnDisk::kSame) continue;
    replaced.push_back({Cause::kOutputReplaced, output.path, stages.runs()[*by].stage});
  }
  return replaced;
}

std::vector<std::string> edited_outputs(const LiveStages& stages, std::size_t stage,
                                        const DiskQueries& disk) {
  std::vector<std::string> edited;
  if (!disk.writer || !disk.exists) return edited;
  for (const Output& output : stages.runs()[stage].outputs) {
    if (output.status == store::OutputStatus::kDeleted) continue;
    if (stages.is_handed_down(stage, output.path) || !disk.exists(output.path)) continue;
    // Nothing where the last stage removed the file.
    if (const Output* left = stages.left_at(output.path)) {
      if (!left->blake3) continue;
      if (left_on_disk(stages, *stages.owner(output.path), *left, disk) == OnDisk::kSame) continue;
    }
    if (disk.writer(output.path) == 0) edited.push_back(output.path);
  }
  return edited;
}

}  // namespace assay::lineage
