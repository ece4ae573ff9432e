// A command line and its environment with secrets redacted, as they may be stored. Applied before
// anything is written, so that no secret reaches the disk.
//
// Redaction cannot be undone: repeating such a stage (`run @N`, `reproduce --run`) takes variables
// from the environment it runs in, and needs the arguments to be given again.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lineage/redact/secret_pattern.h"

namespace assay::lineage {

// From "NAME=value" entries. Assay's own variables (ASSAY_*, its library in LD_PRELOAD) are left
// out: they are not part of what the user runs.
std::map<std::string, std::string> redact_environment(std::span<const std::string> entries);

// The value of one variable.
std::string redact_value(std::string_view name, std::string_view value);

// Command-line arguments: "--token=x", "--password x", "TOKEN=x", headers, URLs, scripts after -c.
std::vector<std::string> redact_arguments(std::span<const std::string> arguments);

// The same for arguments joined with NUL, as the event log has them.
std::string redact_joined_arguments(std::string_view arguments);

// Whether something in it was redacted.
bool is_redacted(std::string_view text);

}  // namespace assay::lineage
