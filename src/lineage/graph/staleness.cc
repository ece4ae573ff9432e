#include "lineage/graph/staleness.h"

#include <fmt/format.h>

#include <set>

namespace assay::lineage {
namespace {

using store::Input;
using store::Job;
using store::Output;

// A later step that reads the file and changes it, or takes it away, answers for the file on disk:
// the earlier one read it before that, as it would again.
bool is_taken_over(const LiveSteps& steps, std::size_t step, const std::string& path) {
  const auto owner = steps.owner(path);
  if (!owner || *owner <= step) return false;
  const Job& job = steps.jobs()[*owner];
  if (steps.reads(*owner, path)) return true;
  for (const Output& output : job.outputs) {
    if (output.path == path) return output.status == store::OutputStatus::kDeleted;
  }
  return true;  // renamed away
}

void check_input(const LiveSteps& steps, std::size_t step, const Input& input,
                 const DiskCheck& on_disk, std::vector<Reason>& reasons) {
  const auto source = steps.source(step, input);
  const bool in_place = steps.changes(step, input.path);
  if (source) {
    const Job& producer = steps.jobs()[source->step];
    if (in_place && producer.id > steps.jobs()[step].id) {
      reasons.push_back({Cause::kChangeUndone, input.path, producer.step});
      return;
    }
    if (input.blake3 && source->output->blake3 && *input.blake3 != *source->output->blake3) {
      reasons.push_back({Cause::kInputRemade, input.path, producer.step});
      return;
    }
  }
  if (!input.blake3 || in_place || is_taken_over(steps, step, input.path)) return;
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

void check_output(const LiveSteps& steps, std::size_t step, const Output& output,
                  const DiskCheck& on_disk, std::vector<Reason>& reasons) {
  if (!output.blake3 || steps.owner(output.path) != step) return;
  if (steps.is_only_log(step, output.path)) return;  // others may write to it too
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

// Adds a reason for every stale step that feeds another, until nothing changes. Steps can feed each
// other in circles, by path: each pair is looked at once.
void propagate(const LiveSteps& steps, std::vector<std::vector<Reason>>& reasons) {
  const std::size_t count = steps.jobs().size();
  std::vector<std::vector<std::pair<std::size_t, const Input*>>> feeds(count);
  for (std::size_t step = 0; step < count; ++step) {
    std::set<std::size_t> seen;
    for (const Input& input : steps.needs(step)) {
      const auto source = steps.source(step, input);
      if (source && seen.insert(source->step).second) feeds[source->step].push_back({step, &input});
    }
  }
  std::vector<std::size_t> todo;
  for (std::size_t step = 0; step < count; ++step) {
    if (!reasons[step].empty()) todo.push_back(step);
  }
  while (!todo.empty()) {
    const std::size_t stale = todo.back();
    todo.pop_back();
    for (const auto& [step, input] : feeds[stale]) {
      if (reasons[step].empty()) todo.push_back(step);
      reasons[step].push_back({Cause::kUpstream, input->path, steps.jobs()[stale].step});
    }
  }
}

}  // namespace

std::string Reason::text(const std::function<std::string(const std::string&)>& shown) const {
  switch (cause) {
    case Cause::kInputRemade:
      return fmt::format("step {} made another {}", step, shown(path));
    case Cause::kInputChanged:
      return fmt::format("{} was read and has changed", shown(path));
    case Cause::kInputMissing:
      return fmt::format("{} was read and is gone", shown(path));
    case Cause::kChangeUndone:
      return fmt::format("step {} made {} again after this changed it", step, shown(path));
    case Cause::kOutputChanged:
      return fmt::format("{} has changed since", shown(path));
    case Cause::kOutputMissing:
      return fmt::format("{} is gone", shown(path));
    case Cause::kUpstream:
      return fmt::format("step {} is stale", step);
  }
  return {};
}

std::vector<std::vector<Reason>> staleness(const LiveSteps& steps, const DiskCheck& on_disk) {
  std::vector<std::vector<Reason>> reasons(steps.jobs().size());
  for (std::size_t step = 0; step < reasons.size(); ++step) {
    const Job& job = steps.jobs()[step];
    for (const Input& input : steps.needs(step))
      check_input(steps, step, input, on_disk, reasons[step]);
    for (const Output& output : job.outputs) {
      check_output(steps, step, output, on_disk, reasons[step]);
    }
  }
  propagate(steps, reasons);
  return reasons;
}

}  // namespace assay::lineage
