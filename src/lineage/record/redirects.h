// Files a command gets as standard input, output and error (`assay run -- cmd < in > out`), so that
// it can be given them again. store::RunRecord keeps them in the shell's notation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hash/digest.h"
#include "observe/collect/process/inherited.h"

namespace assay::lineage {

struct Redirect {
  int descriptor = 0;  // 0, 1 or 2
  bool writes = false;
  bool appends = false;  // to what others wrote, or may write
  std::string path;
  // What the stage left there; none: not known, or it is only read.
  std::optional<hash::Digest> left = std::nullopt;
};

// "1>>/p/log". While the descriptors are still open and before the command has them: a file is the
// stage's to cut if it is empty and its descriptor stands at the beginning; otherwise others write
// to it as well, and the stage adds to what they wrote.
std::vector<std::string> redirects_of(std::span<const collect::Inherited> files);

std::string to_text(const Redirect& redirect);
// For open(2): as the shell opens it.
int open_flags(const Redirect& redirect);
// Gives this process the files as its own standard input, output and error, for the command that it
// starts; two descriptors of one file (`> log 2>&1`) share it. Nothing is lost by that: a file that
// this process writes to already is neither opened nor cut, one that holds something else than the
// stage left is not touched, and a file that was given to this process in its place has precedence.
// Then, and where the file cannot be opened, the stream stays what it is. Returns what there is to
// say about that, a line each; an error, before anything was changed, if there is nothing to read.
base::Result<std::vector<std::string>> take_redirects(std::span<const Redirect> redirects);
std::optional<Redirect> parse_redirect(std::string_view text);
std::vector<Redirect> parse_redirects(std::span<const std::string> texts);

}  // namespace assay::lineage
