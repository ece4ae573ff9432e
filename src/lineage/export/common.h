// What the export formats share: URIs, times, titles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "store/run.h"

namespace assay::lineage {

// "file:///data/a%20b": other bytes are escaped, so every path can be recovered.
std::string file_uri(std::string_view absolute_path);
// "data/a%20b" for a path below the root, else its file_uri().
std::string crate_uri(std::string_view path, std::string_view root);
using base::percent_encoded;
// The path as text: as it is, or its file_uri() if it is not UTF-8. Distinct paths have distinct
// texts, as every path begins with '/'.
std::string text_path(std::string_view absolute_path);

// "urn:blake3:9f8e…"
std::string content_uri(const hash::Digest& digest);
// The remote without credentials, converted to a URI if necessary, or the checkout itself.
std::string source_uri(const store::Git& git);
// A UUID (version 8, application-defined) derived from the run's uid.
std::string uuid_of(const store::RunRecord& run);

std::int64_t ended_unix_ns(const store::RunRecord& run);
// --name, or "stage 3", or the shortened command.
std::string title_of(const store::RunRecord& run);
// "exit code 3", "signal 9"
std::string failure_text(const store::RunRecord& run);
// This program in documents: "urn:assay:0.1.0".
std::string producer_uri();

// Whether the output exists after the run: it was not deleted.
bool exists_after(const store::Output& output);

}  // namespace assay::lineage
