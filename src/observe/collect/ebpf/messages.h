// EbpfMessages: turns what the BPF programs say into Events. What the kernel cannot say at that
// place is added here: the file behind a script, the interpreters that the kernel reads to run a
// program, words too long for a message, numbers of file systems whose stat differs.
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
  using Teller = std::function<void(const Event&)>;

  // Tells the events of one message. `names` is the path as bpf/path.h writes it.
  void receive(const assay_message& message, std::string_view names, std::string_view other,
               const Teller& tell);

  // Files opened in a mount namespace in which our paths mean other files, or none.
  [[nodiscard]] std::uint64_t strangers() const { return strangers_; }
  // Existing files opened for writing past the gate (io_uring, file handles).
  [[nodiscard]] std::uint64_t unseen_changes() const { return unseen_changes_; }

 private:
  void opened(const assay_message& message, Event event, const Teller& tell);
  void executed(const assay_message& message, Event event, const Teller& tell);
  const Interpreter& interpreter(const std::string& program, const wire::Stamp& stamp);

  std::string path_;                                // of the message at hand
  std::unordered_map<pid_t, std::string> scripts_;  // of processes about to be told as executed
  struct Known {
    wire::Stamp stamp;
    Interpreter interpreter;
  };
  std::unordered_map<std::string, Known> interpreters_;  // by the program's path
  std::uint64_t strangers_ = 0;
  std::uint64_t unseen_changes_ = 0;
};

// "file/inner/outer/" -> "/outer/inner/file".
void turn_round(std::string_view names, std::string& path);

}  // namespace assay::collect
