// A command as the user wrote it, and the arguments that a process is started with.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::compare {

// The arguments of a command that needs no shell: plain or single-quoted words, the first of which
// is an existing program. Nothing if it needs a shell.
std::optional<std::vector<std::string>> plain_arguments(const std::string& command);
// {"/bin/sh", "-c", command}
std::vector<std::string> shell_arguments(const std::string& command);

}  // namespace assay::compare
