// Files a command gets as standard input, output and error (`assay run -- cmd < in > out`), so that
// it can be given them again. store::Job keeps them in the shell's notation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/collect/inherited.h"

namespace assay::lineage {

struct Redirect {
  int descriptor = 0;  // 0, 1 or 2
  bool writes = false;
  bool appends = false;
  std::string path;
};

// "1>>/p/log". While the descriptors are still open: whether they append is asked of them.
std::vector<std::string> redirects_of(std::span<const collect::Inherited> files);

std::string to_text(const Redirect& redirect);
// For open(2): as the shell opens it.
int open_flags(const Redirect& redirect);
// Gives this process the files as its own standard input, output and error, for the command that it
// starts; two descriptors of one file (`> log 2>&1`) share it. An error before anything was
// changed.
base::Result<void> take_redirects(std::span<const Redirect> redirects);
std::optional<Redirect> parse_redirect(std::string_view text);
std::vector<Redirect> parse_redirects(std::span<const std::string> texts);

}  // namespace assay::lineage
