#include "step/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "step/testing/drawn_jobs.h"

namespace assay::step {
namespace {

RC_GTEST_PROP(UnitSizes, AreThoseOfAProgramsUnits, ()) {
  spec::JobSpec job = testing::drawn_job();
  job.layout.ep = 1;  // sizes are of ranks that have all experts
  job.train.optimizer = spec::Optimizer::kAdamw;
  const auto program = build(job.model, testing::choices_of_rank(job, 0));
  RC_PRE(program.has_value());
  const Layout& layout = program->choices.layout;
  const UnitSizes sizes = unit_sizes(job.model, layout.tensor.ranks);
  const bool halves = layout.gathers_weights() && layout.unit == spec::ShardUnit::kModule;
  for (const Unit& unit : program->model_units) {
    std::int64_t used = 0;
    if (unit.layer != kNoLayer) {
      const std::int64_t mlp =
          job.model.is_moe_layer(unit.layer) ? sizes.mixture_mlp : sizes.dense_mlp;
      used = !halves ? sizes.attention + mlp : unit.name.ends_with(".mlp") ? mlp : sizes.attention;
    } else {
      used = unit.name == "embedding"   ? sizes.embedding
             : unit.name == "positions" ? sizes.positions
                                        : sizes.head;
    }
    RC_ASSERT(unit.used == used);
    RC_ASSERT(unit.elements == sizes.filled(used, layout.data().ranks));
  }
}

}  // namespace
}  // namespace assay::step
