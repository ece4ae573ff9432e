// Files that are a command's standard input, output and error (`assay run -- cmd < in > out`),
// recorded so that a repeated run gets them too. store::RunRecord has them in the shell's notation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/digest.h"
#include "observe/collect/process/inherited.h"

namespace assay::lineage {

struct Redirect {
  int descriptor = 0;  // 0, 1 or 2
  bool writes = false;
  bool appends = false;  // other programs wrote, or may write, to the file
  std::string path;
  // Content that may be replaced, because a run left it there; none: not known, or only read.
  std::optional<hash::Digest> left = std::nullopt;
};

// "1>>/p/log". Call while the descriptors are open and before the command has them. A file that is
// empty and at offset 0 may be truncated by a repetition; any other is shared with other writers,
// so a repetition appends.
std::vector<std::string> inherited_redirects(std::span<const collect::Inherited> files);

std::string to_text(const Redirect& redirect);
// The flags with which a shell opens it.
int open_flags(const Redirect& redirect);
// Opens a file to which an output stream of a repeated stage goes. The error says that the stream
// is not redirected: for instance because a log was in a folder that does not exist here.
base::Result<base::UniqueFd> open_output(const Redirect& redirect);
// Makes the files this process's standard input, output and error, for the command that it starts.
// A file is opened once: two descriptors of one file (`> log 2>&1`) share it, and one that this
// process already writes to is shared with that stream. To lose no data, an output stream is left
// as it is if the user redirected it to another file, if the stage's file has other content than
// `left`, or if it cannot be opened; the result has a message for each. An error, before anything
// is changed, if an input file cannot be opened.
base::Result<std::vector<std::string>> apply_redirects(std::span<const Redirect> redirects);
// "standard output", "standard error".
std::string_view stream_name(int descriptor);
std::optional<Redirect> parse_redirect(std::string_view text);
std::vector<Redirect> parse_redirects(std::span<const std::string> texts);

}  // namespace assay::lineage
