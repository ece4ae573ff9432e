// EbpfMessages: turns messages of the BPF programs into Events, and adds what they cannot find out:
// the file of a script, the interpreters that the kernel reads to run a program, arguments too long
// for a message, device numbers of file systems whose stat differs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "observe/collect/ebpf/bpf/message.h"
#include "observe/collect/event/event.h"
#include "observe/collect/process/interpreter.h"

namespace assay::collect {

class EbpfMessages {
 public:
  using EventHandler = std::function<void(const Event&)>;

  // Handles the events of one message. `names` is the path as bpf/path.h writes it.
  void receive(const assay_message& message, std::string_view names, std::string_view other,
               const EventHandler& handle);

  // Files opened in a mount namespace where the collector's paths refer to other files, or none.
  [[nodiscard]] std::uint64_t foreign_opens() const { return foreign_opens_; }
  // Existing files opened for writing without passing the gate (io_uring, file handles).
  [[nodiscard]] std::uint64_t unseen_changes() const { return unseen_changes_; }

 private:
  // `given` is the name that the process used.
  void opened(const assay_message& message, Event event, std::string_view given,
              const EventHandler& handle);
  void executed(const assay_message& message, Event event, const EventHandler& handle);
  const ProgramInterpreter& interpreter(const std::string& program, const wire::Stamp& stamp);

  std::string path_;                                // of the current message
  std::string given_path_;                          // the same
  std::unordered_map<pid_t, std::string> scripts_;  // of processes whose exec event follows
  struct Known {
    wire::Stamp stamp;
    ProgramInterpreter interpreter;
  };
  std::unordered_map<std::string, Known> interpreters_;  // by the program's path
  std::uint64_t foreign_opens_ = 0;
  std::uint64_t unseen_changes_ = 0;
};

// "file/inner/outer/" -> "/outer/inner/file".
void reversed_path(std::string_view names, std::string& path);

}  // namespace assay::collect
