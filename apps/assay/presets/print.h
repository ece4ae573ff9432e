// Specs as tables for people and as JSON for programs. Used by `assay presets`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/table.h"
#include "cli/verb.h"
#include "spec/load.h"

namespace assay::cli {

// All presets of a kind, a row each. Prices have a row per offer.
base::Table list_table(spec::Kind kind, const std::vector<spec::Loaded>& all);
base::Json list_json(const std::vector<spec::Loaded>& all, const spec::PriceList& prices);

base::Table price_table(const spec::PriceList& prices);

// Everything about one spec. `prices` are searched for offers of its device.
void print_spec(const Session& session, const spec::Loaded& loaded, const spec::PriceList& prices);
base::Json spec_json(const spec::Loaded& loaded, const spec::PriceList& prices);

}  // namespace assay::cli
