#include "spec/price.h"

namespace assay::spec {

std::string to_text(const PriceRange& range) {
  if (range.low == range.high) return base::to_text(range.low);
  return base::to_text(range.low) + " - " + base::to_text(range.high);
}

}  // namespace assay::spec
