// Files that are a command's standard input, output and error (`assay run -- cmd < in > out`),
// recorded so that a repeated run gets them too. store::RunRecord has them in the shell's notation.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/process/inherited.h"

namespace assay::lineage {

struct Redirect {
  int descriptor = 0;  // 0, 1 or 2
  bool writes = false;
  bool appends = false;      // not to be truncated: others wrote to it before
  bool handed_down = false;  // others write to it, too, as to a job's log (store/streams.h)
  std::string path;
  bool is_log = false;  // of a repeated stage: no output, so the stage can do without it
};

// Who writes to a file that the command inherits, besides the command.
struct OtherWriters {
  pid_t starter = 0;   // the process that started `assay run`, if it has the file as its own stream
  bool assay = false;  // this program, which prints lines on its standard error
  // A file that was handed down to an earlier run of the stage remains so.
  std::span<const Redirect> repeated = {};
};
// "1>/p/out": empty, and opened for the command. "1>>/p/log": it may hold something. "1>&/p/log",
// "1>>&/p/log": handed down; in the second case, something was written through the descriptor
// before. Call in the collector, while the descriptors are open and before the command has them.
std::vector<std::string> inherited_redirects(std::span<const collect::Inherited> files,
                                             const OtherWriters& others);

std::string to_text(const Redirect& redirect);
// The flags with which a shell opens it.
int open_flags(const Redirect& redirect);
// Opens a file to which an output stream of a repeated stage goes. The error says that the stream
// is not redirected: for instance because a log was in a folder that does not exist here.
base::Result<base::UniqueFd> open_output(const Redirect& redirect);
// The files that become standard input, output and error of a repeated stage's command.
class StageStreams {
 public:
  StageStreams() = default;
  // Opens them: those that do not append are truncated, if nothing failed before. A file is opened
  // once: two descriptors of one file (`> log 2>&1`) share it, and one that this process already
  // writes to is shared with that stream.
  static base::Result<StageStreams> open(std::span<const Redirect> redirects);

  // A line for each log that could not be opened: that stream is not redirected.
  [[nodiscard]] const std::vector<std::string>& messages() const { return messages_; }

  // Makes them those of this process, which starts the command. Its own lines do not go there:
  // `assay run` keeps its streams, because another process starts the command.
  void use();

 private:
  std::vector<std::pair<int, base::UniqueFd>> streams_;
  std::vector<std::string> messages_;
};
// "standard output", "standard error".
std::string_view stream_name(int descriptor);
std::optional<Redirect> parse_redirect(std::string_view text);
std::vector<Redirect> parse_redirects(std::span<const std::string> texts);

}  // namespace assay::lineage
