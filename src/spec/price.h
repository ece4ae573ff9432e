// PriceSpec: a provider's price for some devices per hour, with its date and source.
#pragma once

#include <cstdint>
#include <string>

#include "base/money.h"

namespace assay::spec {

enum class Market { kOnDemand, kSpot };

// A single price has low == high; a range is kept as it is rather than averaged.
struct PriceRange {
  base::Money low;
  base::Money high;
};

// "$31.92", or "$55.00 - $76.00".
inline std::string to_text(const PriceRange& range) {
  if (range.low == range.high) return base::to_text(range.low);
  return base::to_text(range.low) + " - " + base::to_text(range.high);
}

struct PriceSpec {
  std::string provider;
  std::string offer;   // what the provider calls it
  std::string device;  // the device preset that is rented
  std::int64_t devices = 1;
  Market market = Market::kOnDemand;
  base::Date date;
  PriceRange per_hour;  // for all `devices` together
  std::string source;
  bool network = false;  // the network between several of them is known
};

}  // namespace assay::spec
