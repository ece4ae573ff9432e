// Runs and GPUs as tables, for top, limit and show.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "share/usage_view.h"

namespace assay::cli {

// "30%", "12.5%"
std::string share_text(std::uint32_t thousandths);

// All tables. To fit into `columns`, the least important columns are left out.
std::string top_text(const share::UsageView& view, std::optional<std::size_t> columns);

// Limits and usage of one run, device by device. Its GPU work must be counted.
std::string limits_text(const share::RunView& run, std::optional<std::size_t> columns);

}  // namespace assay::cli
