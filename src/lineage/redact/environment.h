// The environment and the words of a command as they may be kept: without secrets. Applied before
// anything else sees them, so that no secret reaches the disk.
//
// What is redacted cannot be had back: running such a stage again (`run @N`, `reproduce --run`)
// takes the variables from the environment it is run in, and asks for the words.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lineage/redact/secret_shape.h"

namespace assay::lineage {

// From "NAME=value" entries. Our own variables (ASSAY_*, our library in LD_PRELOAD) are left out:
// they are no part of what the user runs.
std::map<std::string, std::string> redacted_environment(std::span<const std::string> entries);

// The value of one variable.
std::string redacted_value(std::string_view name, std::string_view value);

// A command line: "--token=x", "--password x", "TOKEN=x", headers, URLs, scripts after -c.
std::vector<std::string> redacted_words(std::span<const std::string> words);

// The same of words that are joined with NUL, as the event log has them.
std::string redacted_joined_words(std::string_view words);

// Whether something was taken out of it.
bool is_redacted(std::string_view text);

}  // namespace assay::lineage
