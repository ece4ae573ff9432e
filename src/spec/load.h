// The entry point of src/spec: takes a name or a file, returns a validated spec.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "spec/presets.h"
#include "spec/rules.h"
#include "spec/value.h"

namespace assay::spec {

using PriceList = std::vector<PriceSpec>;
using AnySpec = std::variant<ModelSpec, DeviceSpec, ClusterSpec, LayoutSpec, PriceList, JobSpec>;

// Loaded::kind() takes the position in AnySpec for the Kind.
template <Kind kind, class T>
inline constexpr bool kHolds =
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(kind), AnySpec>, T>;
static_assert(kHolds<Kind::kModel, ModelSpec> && kHolds<Kind::kDevice, DeviceSpec> &&
              kHolds<Kind::kCluster, ClusterSpec> && kHolds<Kind::kLayout, LayoutSpec> &&
              kHolds<Kind::kPrices, PriceList> && kHolds<Kind::kJob, JobSpec>);

struct Loaded {
  std::string name;
  std::string description;
  AnySpec spec;

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(spec.index()); }
};

struct LoadOptions {
  std::span<const std::string> overrides = {};  // "model.layers=4"
  // Makes the document of `this-machine`; tests supply their own machine here.
  std::function<Value()> this_machine = {};
  // Called for a job whose only problem is an impossible layout: the answer becomes the error's
  // hint.
  LayoutAdvice possible_layout = {};
  // A job has as many ranks as its layout says, regardless of its cluster: any number of ranks can
  // run on CPUs.
  bool ranks_from_layout = false;
  // The same for a job whose cluster has CPUs as its devices.
  bool cpu_ranks_from_layout = false;
};

// `reference` is a preset's name, a path (with a "/" or ending in .toml; may be a pipe), or "-" for
// standard input. The content determines the kind: a single section is that kind of spec; anything
// with [batch] or [train], or with several sections, is a job. A job without a cluster runs on this
// machine.
base::Result<Loaded> load(std::string_view reference, const LoadOptions& options = {});

// A model as self-contained text, for files that must be readable without the job they came from,
// and back. `source` names the text in errors.
std::string model_toml(const ModelSpec& model);
base::Result<ModelSpec> model_from_toml(std::string_view text, const std::string& source);

// Every price row of the presets.
base::Result<PriceList> preset_prices();

}  // namespace assay::spec
