// main() of a program with verbs: parse, run one verb, print at most one error line, return the
// exit code.
#pragma once

#include <functional>

#include "cli/verb.h"

namespace assay::cli {

// `describe` fills `root`; its verbs print through the session.
int run_program(int argc, char** argv,
                const std::function<void(const Session&, Verb& root)>& describe);

}  // namespace assay::cli
