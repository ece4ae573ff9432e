#include "lineage/graph/staleness.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::lineage {
namespace {

using store::Input;
using store::Output;
using store::RunRecord;

// Whether a later stage reads and changes the file, or removes it. The file on disk is then that
// stage's; this one read an earlier version, as it would again.
bool is_changed_later(const LiveStages& stages, std::size_t stage, const std::string& path) {
  const auto owner = stages.owner(path);
  if (!owner || *owner <= stage) return false;
  const RunRecord& run = stages.runs()[*owner];
  if (stages.reads(*owner, path)) return true;
  for (const Output& output : run.outputs) {
    if (output.path == path) return output.status == store::OutputStatus::kDeleted;
  }
  return true;  // renamed away
}

void check_input(const LiveStages& stages, std::size_t stage, const Input& input,
                 const DiskQuestions& disk, std::vector<Reason>& reasons) {
  const auto source = stages.source(stage, input);
  const bool in_place = stages.changes(stage, input.path);
  if (source) {
    const RunRecord& producer = stages.runs()[source->stage];
    if (in_place && producer.id > stages.runs()[stage].id) {
      reasons.push_back({Cause::kChangeUndone, input.path, producer.stage});
      return;
    }
    if (input.blake3 && source->output->blake3 && *input.blake3 != *source->output->blake3) {
      reasons.push_back({Cause::kInputRemade, input.path, producer.stage});
      return;
    }
  }
  if (!input.blake3 || in_place || is_changed_later(stages, stage, input.path)) return;
  switch (disk.content(input.path, *input.blake3, input.size)) {
    case OnDisk::kSame:
      break;
    case OnDisk::kChanged:
      reasons.push_back({Cause::kInputChanged, input.path});
      // Of a file that a stage makes, it matters that the stage did not do it.
      if (source && disk.writer) reasons.back().writer = disk.writer(input.path);
      break;
    case OnDisk::kMissing:
      reasons.push_back({Cause::kInputMissing, input.path});
      break;
  }
}

void check_output(const LiveStages& stages, std::size_t stage, const Output& output,
                  const DiskQuestions& disk, std::vector<Reason>& reasons) {
  if (!output.blake3 || stages.owner(output.path) != stage) return;
  if (stages.is_only_log(stage, output.path)) return;  // others may write to it too
  switch (disk.content(output.path, *output.blake3, output.size)) {
    case OnDisk::kSame:
      break;
    case OnDisk::kChanged:
      reasons.push_back({Cause::kOutputChanged, output.path});
      if (disk.writer) reasons.back().writer = disk.writer(output.path);
      break;
    case OnDisk::kMissing:
      reasons.push_back({Cause::kOutputMissing, output.path});
      break;
  }
}

std::string_view extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? std::string_view() : name.substr(dot);
}

bool means_nothing(std::string_view name) {
  return name.starts_with('.') || name == "__pycache__/";
}

bool is_python(std::string_view kind) {
  return kind == ".py" || kind == ".pyc" || kind == ".pyi";
}

// The first name that was in a listed folder and is gone. Not what stages write or remove.
std::optional<std::string> gone_name(const LiveStages& stages, const store::PathFact& fact,
                                     const std::vector<std::string>& names_now) {
  const std::set<std::string_view> now(names_now.begin(), names_now.end());
  const std::string folder = fact.path + "/";
  for (const std::string& name : fact.names) {
    if (now.contains(name) || means_nothing(name)) continue;
    if (name.ends_with('/')) {
      if (!stages.is_written_below(folder + name.substr(0, name.size() - 1))) return name;
    } else if (!is_python(extension_of(name)) && !stages.owner(folder + name)) {
      return name;
    }
  }
  return std::nullopt;
}

// A name in a listed folder that was not there then and that the stage would probably read now: it
// is of a kind (by its extension) that the stage read there; where it read nothing there, any name.
// Outputs of stages, hidden files, and Python's sources, which are listed at every import, do not
// count. Of names that are gone, those that the stage read are missing inputs; where it read
// nothing there, any name counts.
void check_listed(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                  const DiskQuestions& disk, std::vector<Reason>& reasons) {
  const auto now = disk.names(fact.path);
  if (!now) {
    // Of a folder of outputs, the outputs are gone.
    if (disk.exists && !disk.exists(fact.path) && !stages.is_written_below(fact.path)) {
      reasons.push_back({Cause::kListedGone, fact.path});
    }
    return;
  }
  const std::set<std::string_view> then(fact.names.begin(), fact.names.end());
  std::set<std::string_view> kinds;
  bool reads_below = false;
  const std::string folder = fact.path + "/";
  for (const Input& input : stages.needs(stage)) {
    if (!input.path.starts_with(folder)) continue;
    const std::string_view rest = std::string_view(input.path).substr(folder.size());
    if (rest.find('/') != rest.npos) {
      reads_below = true;
    } else {
      kinds.insert(extension_of(rest));
    }
  }
  // Where programs are found by listing, new names mean nothing by themselves.
  const bool importable =
      fact.path == stages.runs()[stage].directory ||
      std::any_of(fact.names.begin(), fact.names.end(),
                  [](const std::string& name) { return name.ends_with(".py"); });
  reads_below = reads_below && !importable;
  const bool any = kinds.empty() && !reads_below && !importable;
  for (const std::string& name : *now) {
    if (then.contains(name) || means_nothing(name)) continue;
    bool counts = false;
    if (name.ends_with('/')) {
      counts = (any || reads_below) &&
               !stages.is_written_below(folder + name.substr(0, name.size() - 1));
    } else {
      const std::string_view kind = extension_of(name);
      counts = (any || kinds.contains(kind)) && !is_python(kind) && !stages.owner(folder + name);
    }
    if (!counts) continue;
    reasons.push_back({Cause::kListedMore, folder + name});
    break;
  }
  if (!any) return;
  if (const auto name = gone_name(stages, fact, *now)) {
    reasons.push_back({Cause::kListedGone, folder + *name});
  }
}

void check_link(const LiveStages& stages, const store::PathFact& fact, const DiskQuestions& disk,
                bool made, std::vector<Reason>& reasons) {
  if (!disk.link) return;
  const std::optional<std::string> now = disk.link(fact.path);
  if (now == fact.target) return;
  if (!made && stages.owner(fact.path)) return;  // a stage has put a file there
  reasons.push_back({made ? Cause::kMadeLinkMoved : Cause::kLinkMoved, fact.path});
  reasons.back().now = now.value_or("");
}

void check_fact(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                const DiskQuestions& disk, std::vector<Reason>& reasons) {
  using FactKind = store::PathFact::Kind;
  switch (fact.kind) {
    case FactKind::kMadeFolder:
    case FactKind::kNetwork:
      return;
    case FactKind::kFollowedLink:
      return check_link(stages, fact, disk, false, reasons);
    case FactKind::kMadeLink:
      return check_link(stages, fact, disk, true, reasons);
    case FactKind::kAbsent:
      if (!disk.exists || stages.changes(stage, fact.path) || !disk.exists(fact.path)) return;
      reasons.push_back({Cause::kAppeared, fact.path});
      return;
    case FactKind::kListed:
      if (disk.names) check_listed(stages, stage, fact, disk, reasons);
      return;
  }
}

// Adds a reason for every stage fed by a stale one, until nothing changes. Stages can feed each
// other in cycles, by path: each pair is visited once.
void propagate(const LiveStages& stages, std::vector<std::vector<Reason>>& reasons) {
  const std::size_t count = stages.runs().size();
  std::vector<std::vector<std::pair<std::size_t, const Input*>>> feeds(count);
  for (std::size_t stage = 0; stage < count; ++stage) {
    std::set<std::size_t> seen;
    for (const Input& input : stages.needs(stage)) {
      const auto source = stages.source(stage, input);
      if (source && seen.insert(source->stage).second)
        feeds[source->stage].push_back({stage, &input});
    }
  }
  std::vector<std::size_t> todo;
  for (std::size_t stage = 0; stage < count; ++stage) {
    if (!reasons[stage].empty()) todo.push_back(stage);
  }
  while (!todo.empty()) {
    const std::size_t stale = todo.back();
    todo.pop_back();
    for (const auto& [stage, input] : feeds[stale]) {
      if (reasons[stage].empty()) todo.push_back(stage);
      reasons[stage].push_back({Cause::kUpstream, input->path, stages.runs()[stale].stage});
    }
  }
}

std::string changed_text(const std::optional<store::RunId>& writer) {
  if (!writer) return "has changed";
  if (*writer == 0) return "was changed by hand (no run did it)";
  return fmt::format("was written by run {} since", *writer);
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::kInputRemade:
      return "input-remade";
    case Cause::kInputChanged:
      return "input-changed";
    case Cause::kInputMissing:
      return "input-gone";
    case Cause::kChangeUndone:
      return "change-undone";
    case Cause::kOutputChanged:
      return "output-changed";
    case Cause::kOutputMissing:
      return "output-gone";
    case Cause::kUpstream:
      return "stage-stale";
    case Cause::kLinkMoved:
      return "link-moved";
    case Cause::kMadeLinkMoved:
      return "made-link-moved";
    case Cause::kListedMore:
      return "listed-more";
    case Cause::kListedGone:
      return "listed-gone";
    case Cause::kAppeared:
      return "appeared";
  }
  return "";
}

std::string Reason::text(const std::function<std::string(const std::string&)>& shown) const {
  switch (cause) {
    case Cause::kInputRemade:
      return fmt::format("stage {} has written {} since", stage, shown(path));
    case Cause::kInputChanged:
      return fmt::format("input {} {}", shown(path), changed_text(writer));
    case Cause::kInputMissing:
      return fmt::format("input {} is gone", shown(path));
    case Cause::kChangeUndone:
      return fmt::format("stage {} wrote {} again after this stage changed it", stage, shown(path));
    case Cause::kOutputChanged:
      return fmt::format("output {} {}", shown(path), changed_text(writer));
    case Cause::kOutputMissing:
      return fmt::format("output {} is gone", shown(path));
    case Cause::kUpstream:
      return fmt::format("stage {} is stale", stage);
    case Cause::kLinkMoved:
    case Cause::kMadeLinkMoved:
      return now.empty() ? fmt::format("link {} is gone", shown(path))
                         : fmt::format("link {} leads to {} now", shown(path), now);
    case Cause::kListedMore:
      return fmt::format("{} is new in a folder that was listed", shown(path));
    case Cause::kListedGone:
      return fmt::format("{} was listed, and is gone", shown(path));
    case Cause::kAppeared:
      return fmt::format("{} was looked for, and is there now", shown(path));
  }
  return {};
}

std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk) {
  return staleness(stages, DiskQuestions{.content = on_disk});
}

std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskQuestions& disk) {
  std::vector<std::vector<Reason>> reasons(stages.runs().size());
  for (std::size_t stage = 0; stage < reasons.size(); ++stage) {
    const RunRecord& run = stages.runs()[stage];
    for (const Input& input : stages.needs(stage))
      check_input(stages, stage, input, disk, reasons[stage]);
    for (const Output& output : run.outputs) {
      check_output(stages, stage, output, disk, reasons[stage]);
    }
    for (const store::PathFact& fact : run.facts) {
      check_fact(stages, stage, fact, disk, reasons[stage]);
    }
  }
  propagate(stages, reasons);
  return reasons;
}

std::vector<std::string> edited_outputs(const LiveStages& stages, std::size_t stage,
                                        const DiskQuestions& disk) {
  std::vector<std::string> edited;
  if (!disk.writer || !disk.exists) return edited;
  for (const Output& output : stages.runs()[stage].outputs) {
    if (output.status == store::OutputStatus::kDeleted) continue;
    if (stages.is_only_log(stage, output.path) || !disk.exists(output.path)) continue;
    // Nothing where the last stage removed the file.
    const std::vector<Output>& last = stages.runs()[*stages.owner(output.path)].outputs;
    const auto left = std::find_if(last.begin(), last.end(), [&](const Output& one) {
      return one.path == output.path && one.status != store::OutputStatus::kDeleted;
    });
    if (left != last.end()) {
      if (!left->blake3) continue;
      if (disk.content(left->path, *left->blake3, left->size) == OnDisk::kSame) continue;
    }
    if (disk.writer(output.path) == 0) edited.push_back(output.path);
  }
  return edited;
}

}  // namespace assay::lineage
