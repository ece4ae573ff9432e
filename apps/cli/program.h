// What main() of every program with verbs does: parse, run one verb, print one error line, exit
// with the code that means it.
#pragma once

#include <functional>

#include "cli/verb.h"

namespace assay::cli {

// `root` is described once the session stands that its verbs speak through.
int run_program(int argc, char** argv,
                const std::function<void(const Session&, Verb& root)>& describe);

}  // namespace assay::cli
