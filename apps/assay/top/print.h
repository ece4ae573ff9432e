// Runs and GPUs as tables. Used by top, limit and show.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "share/view.h"

namespace assay::cli {

// "30%", "12.5%"
std::string share_text(std::uint32_t thousandths);

// Both tables. Where they would be wider than `columns`, what matters least is left out.
std::string top_text(const share::View& view, std::optional<std::size_t> columns);

// What holds for one run and what it uses, device by device.
std::string limits_text(const share::RunView& run, std::optional<std::size_t> columns);

}  // namespace assay::cli
