#include "observe/collect/testing/recorder.h"

#include "base/process/environment.h"

#include <unistd.h>

namespace assay::collect::testing {

void EventRecorder::on_event(const Event& event) {
  events.push_back({event.op, event.flags, event.thread, event.process, event.parent, event.value,
                    event.stamp, std::string(event.path), std::string(event.other)});
  const auto inside = [&](std::string_view path) { return path.starts_with(root + "/"); };
  const auto shorten = [&](std::string_view path) {
    return inside(path) ? "T" + std::string(path.substr(root.size())) : std::string(path);
  };
  if (!inside(event.path) && !inside(event.other)) return;
  std::string line = std::string(wire::name_of(event.op)) + " " + shorten(event.path);
  if (event.op == wire::RecordOp::kRename || event.op == wire::RecordOp::kLink) {
    line += " " + shorten(event.other);
  }
  if ((event.flags & wire::flag::kWritable) != 0) line += " writable";
  if ((event.flags & wire::flag::kNoStamp) != 0) line += " no-stamp";
  if ((event.flags & wire::flag::kSize) != 0) line += " size";
  lines.push_back(line);
}

void EventRecorder::before_change(std::string_view path, const wire::Stamp&, Change change) {
  if (!path.starts_with(root + "/")) return;
  lines.push_back((change == Change::kName    ? "change name T"
                   : change == Change::kTimes ? "change times T"
                                              : "change content T") +
                  std::string(path.substr(root.size())));
}

std::vector<RecordedEvent> EventRecorder::of(wire::RecordOp op) const {
  std::vector<RecordedEvent> found;
  for (const RecordedEvent& event : events) {
    if (event.op == op) found.push_back(event);
  }
  return found;
}

std::set<pid_t> EventRecorder::unfinished() const {
  std::set<pid_t> alive;
  for (const RecordedEvent& event : events) {
    if (event.op == wire::RecordOp::kProcess) alive.insert(event.process);
    if (event.op == wire::RecordOp::kExit) alive.erase(event.process);
  }
  return alive;
}

Launch command(std::vector<std::string> arguments, const std::string& directory) {
  return {.command = std::move(arguments),
          .environment = base::Environment::from_current(),
          .directory = directory};
}

}  // namespace assay::collect::testing
