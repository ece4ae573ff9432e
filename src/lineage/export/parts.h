// What the export formats share: URIs, times, texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "store/run.h"

namespace assay::lineage {

// "file:///data/a%20b": bytes that a URI cannot hold are escaped, so any path can be had back.
std::string file_uri(std::string_view absolute_path);
// "data/a%20b" for a path below the root, else its file_uri().
std::string crate_uri(std::string_view path, std::string_view root);
using base::percent_encoded;
// The path where a format wants a text: as it is, or its file_uri() when it is not UTF-8. Two paths
// are never the same text, as every path begins with '/'.
std::string text_path(std::string_view absolute_path);

// "urn:blake3:9f8e…"
std::string content_uri(const hash::Digest& digest);
// Where the source came from, without credentials: the remote, made a URI if it is none, or the
// checkout itself.
std::string source_uri(const store::Git& git);
// A UUID (version 8: ours) that is always the same for one run.
std::string uuid_of(const store::RunRecord& run);

std::int64_t ended_unix_ns(const store::RunRecord& run);
// --name, or "stage 3", or the command as far as it fits into a title.
std::string title_of(const store::RunRecord& run);
// "exit code 3", "signal 9"
std::string failure_text(const store::RunRecord& run);
// What this program calls itself in documents: "urn:assay:0.1.0".
std::string producer_uri();

// Outputs that are there after the run.
bool is_left(const store::Output& output);

}  // namespace assay::lineage
