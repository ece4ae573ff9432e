// SuiteHost: what this machine has, detected once, and which of a case's requirements it lacks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "machine/machine.h"
#include "suite/suite.h"

namespace assay::suite {

struct SuiteHost {
  machine::Machine machine;
  std::string program;  // path of this program
  std::string path;     // search path of the cases: this program's folders, then $PATH
  // Why a tracer does not work on this machine; nothing if it does.
  std::function<std::optional<std::string>(const std::string& tracer)> tracer_problem;
  // Whether a shell command succeeds within seconds.
  std::function<bool(const std::string& command)> works;
};

SuiteHost discover_host();

// "needs 2 GPUs with NVLink; this machine has none". Nothing if all needs are met.
std::optional<std::string> missing_requirement(const Needs& needs, const SuiteHost& host);

}  // namespace assay::suite
