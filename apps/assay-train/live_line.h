// What is said of a step in one line: whole where there is room, without what matters least where
// there is not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "assay-train/step_row.h"

namespace assay::cli {

// `eta_seconds`: nothing in rows that stay. `columns`: nothing for as many as it takes.
std::string live_line(const MeasuredStep& step, std::optional<double> validation_loss,
                      std::optional<double> eta_seconds, std::optional<std::size_t> columns);

}  // namespace assay::cli
