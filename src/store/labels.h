// Labels: names given by the user to a run or to a content. Setting a label again moves it. Table
// `label`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "hash/digest.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

using Labelled = std::variant<RunId, hash::Digest>;

struct Label {
  std::string name;
  Labelled target;
};

// A usage error unless the name is one word that cannot be mistaken for something else: "last", a
// number, "@3", an option and a path are refused.
base::Result<void> check_label(std::string_view name);

// Returns what the label named before, if anything.
base::Result<std::optional<Labelled>> set_label(Store& store, std::string_view name,
                                                const Labelled& target);
// Whether it existed.
base::Result<bool> remove_label(Store& store, std::string_view name);

base::Result<std::optional<Labelled>> find_label(Store& store, std::string_view name);
base::Result<std::vector<Label>> all_labels(Store& store);
base::Result<std::vector<std::string>> labels_of(Store& store, const Labelled& target);

}  // namespace assay::store
