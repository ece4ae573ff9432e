// The front door of src/spec: a name or a file, in; a validated spec, out.
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
  // Makes the document of `this-machine`; tests put a machine of their own here.
  std::function<Value()> this_machine = {};
  // Asked what to do about a job whose layout is impossible, and all else of which is not: the
  // answer becomes the error's hint.
  LayoutAdvice possible_layout = {};
  // A job has as many ranks as its layout says, whatever its cluster has: CPUs can be any number.
  bool ranks_from_layout = false;
  // The same for a job whose cluster has CPUs as its devices.
  bool cpu_ranks_from_layout = false;
};

// `reference` is a preset's name, a path (with a "/" or ending in .toml; a pipe will do), or "-"
// for standard input. What is found decides what it is: a lone section is that kind of spec,
// anything with [batch] or [train], or with several sections, is a job. A job without a cluster
// runs on this machine.
base::Result<Loaded> load(std::string_view reference, const LoadOptions& options = {});

// A model as text that stands by itself, for files that must be read without the job they came
// from, and back. `source` names the text in errors.
std::string model_toml(const ModelSpec& model);
base::Result<ModelSpec> model_from_toml(std::string_view text, const std::string& source);

// Every price row of the presets.
base::Result<PriceList> preset_prices();

}  // namespace assay::spec
