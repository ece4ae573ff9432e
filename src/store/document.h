// Documents: long texts that many runs share (diffs, environments, machines), kept once by content
// and compressed. Table `document`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace assay::store {

// The id of the row that holds `text`, inserted if there is none; nothing for an empty text.
base::Result<std::optional<std::int64_t>> keep_document(Database& database, std::string_view text);

// Empty if `id` is.
base::Result<std::string> read_document(Database& database, std::optional<std::int64_t> id);

}  // namespace assay::store
