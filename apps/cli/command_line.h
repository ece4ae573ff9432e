// Parses the command line against a tree of verbs. CLI11 is used nowhere else: its headers are
// heavy, and its error messages are replaced by ours.
#pragma once

#include <string>
#include <variant>

#include "base/result.h"
#include "cli/verb.h"

namespace assay::cli {

// The result of parsing.
struct ShowHelp {
  std::string text;
};
struct ShowVersion {};
struct RunVerb {
  const Verb* verb;
};
using Request = std::variant<ShowHelp, ShowVersion, RunVerb>;

// Fills the verbs' arguments and options, and the session's flags. Errors are usage errors whose
// `where` is the verb ("presets show").
base::Result<Request> parse_command_line(const Verb& root, Session& session, int argc, char** argv);

}  // namespace assay::cli
