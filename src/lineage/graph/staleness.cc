#include "lineage/graph/staleness.h"

#include <fmt/format.h>

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
                 const DiskCheck& on_disk, std::vector<Reason>& reasons) {
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
  switch (on_disk(input.path, *input.blake3, input.size)) {
    case OnDisk::kSame:
      break;
    case OnDisk::kChanged:
      reasons.push_back({Cause::kInputChanged, input.path});
      break;
    case OnDisk::kMissing:
      reasons.push_back({Cause::kInputMissing, input.path});
      break;
  }
}

void check_output(const LiveStages& stages, std::size_t stage, const Output& output,
                  const DiskCheck& on_disk, std::vector<Reason>& reasons) {
  if (!output.blake3 || stages.owner(output.path) != stage) return;
  if (stages.is_only_log(stage, output.path)) return;  // others may write to it too
  switch (on_disk(output.path, *output.blake3, output.size)) {
    case OnDisk::kSame:
      break;
    case OnDisk::kChanged:
      reasons.push_back({Cause::kOutputChanged, output.path});
      break;
    case OnDisk::kMissing:
      reasons.push_back({Cause::kOutputMissing, output.path});
      break;
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

}  // namespace

std::string Reason::text(const std::function<std::string(const std::string&)>& shown) const {
  switch (cause) {
    case Cause::kInputRemade:
      return fmt::format("stage {} has written {} since", stage, shown(path));
    case Cause::kInputChanged:
      return fmt::format("input {} has changed", shown(path));
    case Cause::kInputMissing:
      return fmt::format("input {} is gone", shown(path));
    case Cause::kChangeUndone:
      return fmt::format("stage {} wrote {} again after this stage changed it", stage, shown(path));
    case Cause::kOutputChanged:
      return fmt::format("output {} has changed", shown(path));
    case Cause::kOutputMissing:
      return fmt::format("output {} is gone", shown(path));
    case Cause::kUpstream:
      return fmt::format("stage {} is stale", stage);
  }
  return {};
}

std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk) {
  std::vector<std::vector<Reason>> reasons(stages.runs().size());
  for (std::size_t stage = 0; stage < reasons.size(); ++stage) {
    const RunRecord& run = stages.runs()[stage];
    for (const Input& input : stages.needs(stage))
      check_input(stages, stage, input, on_disk, reasons[stage]);
    for (const Output& output : run.outputs) {
      check_output(stages, stage, output, on_disk, reasons[stage]);
    }
  }
  propagate(stages, reasons);
  return reasons;
}

}  // namespace assay::lineage
