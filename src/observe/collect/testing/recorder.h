// EventRecorder: an EventSink that keeps all events, and the Launch of a command for tests.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "observe/collect/tracers.h"

namespace assay::collect::testing {

struct RecordedEvent {
  wire::RecordOp op = wire::RecordOp::kNone;
  std::uint16_t flags = 0;
  pid_t thread = 0;
  pid_t process = 0;
  pid_t parent = 0;
  int value = 0;
  wire::Stamp stamp;
  std::string path;
  std::string other;
};

class EventRecorder : public EventSink {
 public:
  void on_event(const Event& event) override;
  void before_change(std::string_view path, const wire::Stamp& stamp, Change change) override;

  std::vector<RecordedEvent> events;
  // In order, of everything below `root`, which is written as "T": "read T/a", "change name T/b".
  std::vector<std::string> lines;
  std::string root = "/nowhere";

  [[nodiscard]] std::vector<RecordedEvent> of(wire::RecordOp op) const;
  // Processes that were announced and whose end was not: empty if all events arrived.
  [[nodiscard]] std::set<pid_t> unfinished() const;
};

// `arguments` through the collector, in `directory`, with this process's environment.
Launch command(std::vector<std::string> arguments, const std::string& directory);

}  // namespace assay::collect::testing
