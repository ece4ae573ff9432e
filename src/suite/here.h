// Here: what this machine has, asked once, and what a step would miss on it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "machine/machine.h"
#include "suite/suite.h"

namespace assay::suite {

struct Here {
  machine::Machine machine;
  std::string program;  // this one's path
  std::string path;     // where programs of steps are looked for: $PATH behind our own folders
  // Why a tracer does not work here; nothing if it does.
  std::function<std::optional<std::string>(const std::string& tracer)> tracer_trouble;
  // Whether a shell command succeeds, within seconds.
  std::function<bool(const std::string& command)> works;
};

// The machine that this runs on.
Here look_around();

// "needs 2 GPUs with NVLink; this machine has none". Nothing when all is there.
std::optional<std::string> missing_here(const Needs& needs, const Here& here);

}  // namespace assay::suite
