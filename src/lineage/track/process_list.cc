#include "lineage/track/process_list.h"

namespace assay::lineage {

using wire::RecordOp;

void ProcessList::on_event(const collect::Event& event) {
  if (event.process == 0) return;
  auto [found, is_new] = latest_.try_emplace(event.process, 0);
  // After an exit, only a start means another process: all other events are late records.
  const bool begins = event.op == RecordOp::kProcess || event.op == RecordOp::kExec;
  // So is a start that the parent reports after its child has exited.
  if (!is_new && begins) {
    const std::int64_t ended_ns = processes_[found->second].ended_ns;
    is_new = ended_ns >= 0 && event.time_ns - started_ns_ > ended_ns;
  }
  if (is_new) {
    found->second = static_cast<std::uint32_t>(processes_.size());
    processes_.push_back({.started_ns = event.time_ns - started_ns_, .pid = event.process});
  }
  Process& process = processes_[found->second];
  // The first parent created it; later ones are reapers.
  if (process.parent == 0) process.parent = event.parent;
  if (event.op == RecordOp::kExec) {
    process.program = program(event.path);
    process.arguments = event.other;
  } else if (event.op == RecordOp::kExit && process.ended_ns < 0) {
    process.ended_ns = event.time_ns - started_ns_;
    if ((event.flags & wire::flag::kNoStatus) == 0) process.wait_status = event.value;
  }
}

void ProcessList::for_each(const std::function<void(store::ProcessRecord)>& visit) const {
  for (const Process& process : processes_) {
    store::ProcessRecord stored;
    stored.pid = process.pid;
    stored.parent = process.parent;
    stored.program = programs_[process.program];
    stored.started_ns = process.started_ns;
    if (process.ended_ns >= 0) {
      stored.ended_ns = process.ended_ns;
      if (process.wait_status != kUnknown) stored.wait_status = process.wait_status;
    }
    std::string_view rest = process.arguments;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\0'), rest.size());
      stored.arguments.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    visit(std::move(stored));
  }
}

std::string_view ProcessList::program_of(pid_t pid) const {
  constexpr int kMostForks = 64;  // a pid that was used again could lead in a circle
  for (int i = 0; i < kMostForks; ++i) {
    const auto found = latest_.find(pid);
    if (found == latest_.end()) return {};
    const Process& process = processes_[found->second];
    if (process.program != 0) return programs_[process.program];
    pid = process.parent;
  }
  return {};
}

std::uint32_t ProcessList::program(std::string_view path) {
  const auto [found, is_new] =
      program_ids_.try_emplace(std::string(path), static_cast<std::uint32_t>(programs_.size()));
  if (is_new) programs_.emplace_back(path);
  return found->second;
}

}  // namespace assay::lineage
