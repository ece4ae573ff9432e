// Tells the table's numbers from its words, so that columns of numbers stand to the right.
#pragma once

#include <string_view>

namespace assay::base {

enum class CellKind {
  kNumber,  // "8,030,261,248", "-3.5", "$31.92", "57.8%", "8.03B", "80.0 GiB", "1.2e-5", "≤ 3 ms"
  kNeutral,  // nothing, or a sign for nothing: "", "—", "-", "n/a"
  kText,     // the rest: "H100", "2026-08-14", "1.2.3", "8xH100", "1,2", "7 of 8"
};

CellKind cell_kind(std::string_view cell);

}  // namespace assay::base
