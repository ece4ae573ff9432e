#include "lineage/track/process_list.h"

namespace assay::lineage {

using wire::Op;

void ProcessList::happened(const collect::Event& event) {
  if (event.process == 0) return;
  auto [found, is_new] = latest_.try_emplace(event.process, 0);
  // After the end, only a beginning is another process: whatever else comes is a late record.
  const bool begins = event.op == Op::kProcess || event.op == Op::kExec;
  // So is the beginning itself, told by a parent who was slower than its child.
  if (!is_new && begins) {
    const std::int64_t ended_ns = processes_[found->second].ended_ns;
    is_new = ended_ns >= 0 && event.time_ns - started_ns_ > ended_ns;
  }
  if (is_new) {
    found->second = static_cast<std::uint32_t>(processes_.size());
    processes_.push_back({.started_ns = event.time_ns - started_ns_, .pid = event.process});
  }
  Process& process = processes_[found->second];
  // The first parent is the one that made it; later ones have adopted it.
  if (process.parent == 0) process.parent = event.parent;
  if (event.op == Op::kExec) {
    process.program = program(event.path);
    process.words = event.other;
  } else if (event.op == Op::kExit && process.ended_ns < 0) {
    process.ended_ns = event.time_ns - started_ns_;
    if ((event.flags & wire::flag::kNoStatus) == 0) process.wait_status = event.value;
  }
}

void ProcessList::for_each(const std::function<void(store::Process)>& tell) const {
  for (const Process& process : processes_) {
    store::Process told;
    told.pid = process.pid;
    told.parent = process.parent;
    told.program = programs_[process.program];
    told.started_ns = process.started_ns;
    if (process.ended_ns >= 0) {
      told.ended_ns = process.ended_ns;
      if (process.wait_status != kUnknown) told.wait_status = process.wait_status;
    }
    std::string_view words = process.words;
    while (!words.empty()) {
      const std::size_t end = std::min(words.find('\0'), words.size());
      told.arguments.emplace_back(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
      // "a\0" is the words "a" and "" only if something says so; a final NUL ends the last word.
    }
    tell(std::move(told));
  }
}

std::uint32_t ProcessList::program(std::string_view path) {
  const auto [found, is_new] =
      program_ids_.try_emplace(std::string(path), static_cast<std::uint32_t>(programs_.size()));
  if (is_new) programs_.emplace_back(path);
  return found->second;
}

}  // namespace assay::lineage
