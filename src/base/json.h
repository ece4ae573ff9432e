// JSON output: every verb's --json goes through json_text().
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay::base {

// Keys keep the order in which a verb writes them, so output reads like the table it mirrors.
using Json = nlohmann::ordered_json;

// Two-space indented with a final newline. Never throws: a number that is not finite becomes null.
//
// A path can hold any bytes and JSON only UTF-8. So where NAME has a string that is not UTF-8, what
// is not becomes U+FFFD in it, for people, and NAME_escaped follows, for programs: the same string
// percent-encoded, whose decoding is the bytes. For a list with such strings, a list.
std::string json_text(const Json& document);
// The same as one line, for streams of documents (JSON lines).
std::string json_line(const Json& document);

}  // namespace assay::base
