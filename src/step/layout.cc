#include "step/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace assay::step {

Range Range::common(const Range& other) const {
  const std::int64_t from = std::max(first, other.first);
  return {from, std::max<std::int64_t>(0, std::min(end(), other.end()) - from)};
}

base::Result<Layout> layout_of(const spec::LayoutSpec& spec, std::int64_t rank) {
  const auto refuse = [](const char* key, const std::string& what, const std::string& hint) {
    return base::fail(base::usage_error(key, what, hint));
  };
  const std::pair<const char*, std::int64_t> degrees[] = {{"layout.tp", spec.tp},
                                                          {"layout.pp", spec.pp},
                                                          {"layout.cp", spec.cp},
                                                          {"layout.ep", spec.ep}};
  for (const auto& [key, degree] : degrees) {
    if (degree > 1) {
      return refuse(key, "cannot be trained with yet", fmt::format("set {}=1", key));
    }
  }
  if (spec.dp > 1) {
    return refuse("layout.dp", "ranks that share nothing cannot be trained yet",
                  fmt::format("set layout.dp=1 layout.fsdp={} layout.zero=1", spec.dp * spec.fsdp));
  }
  if (spec.fsdp > 1 && spec.zero != 1) {
    return refuse("layout.zero", "gradients and parameters cannot be sharded yet",
                  "set layout.zero=1");
  }
  return Layout{.data = {rank, spec.fsdp}};
}

}  // namespace assay::step
