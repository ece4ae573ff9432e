// A command as it is written, and the words that a process is started with.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::compare {

// The words of a command that needs no shell: plain words and quoted ones, the first of which is a
// program that is there. Nothing if it needs one.
std::optional<std::vector<std::string>> plain_words(const std::string& command);
// {"/bin/sh", "-c", command}
std::vector<std::string> shell_words(const std::string& command);

}  // namespace assay::compare
