#include "plan/software_layouts.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace assay::plan {
namespace {

struct Degree {
  std::string_view key;
  std::string_view name;
  std::int64_t spec::LayoutSpec::*ranks;
};
constexpr std::array<Degree, 4> kCuts = {{{"tp", "tensor", &spec::LayoutSpec::tp},
                                          {"pp", "pipeline", &spec::LayoutSpec::pp},
                                          {"cp", "context", &spec::LayoutSpec::cp},
                                          {"ep", "expert", &spec::LayoutSpec::ep}}};

const Degree* missing_degree(Framework framework, const spec::LayoutSpec& layout) {
  if (cuts_models(framework)) return nullptr;
  for (const Degree& cut : kCuts)
    if (layout.*cut.ranks > 1) return &cut;
  return nullptr;
}

std::string without(Framework framework, const Degree& cut) {
  return fmt::format("{} has no {} parallelism", to_text(framework), cut.name);
}

}  // namespace

std::string missing_in(Framework framework, const spec::LayoutSpec& layout) {
  const Degree* cut = missing_degree(framework, layout);
  return cut == nullptr ? "" : fmt::format("layout.{}: {}", cut->key, without(framework, *cut));
}

base::Result<void> check_layout_run(Framework framework, const spec::JobSpec& job) {
  const Degree* cut = missing_degree(framework, job.layout);
  if (cut == nullptr) return {};
  return base::fail(base::usage_error(
      fmt::format("layout.{}", cut->key), without(framework, *cut),
      fmt::format("set layout.{}=1, or name software that has it: megatron-core", cut->key)));
}

}  // namespace assay::plan
