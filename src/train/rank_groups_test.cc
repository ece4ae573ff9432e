// The errors for impossible counts of experts' rows; everything else about groups is tested by
// training with them (tests/train).
#include "train/rank_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/local.h"

namespace assay::train {
namespace {

TEST(RankGroups, CountsThatDoNotFitAreAnError) {
  const spec::ModelSpec model{.vocab = 32,
                              .dim = 8,
                              .layers = 1,
                              .heads = 2,
                              .kv_heads = 1,
                              .head_dim = 4,
                              .ffn = 8,
                              .context = 4,
                              .experts = 2,
                              .experts_per_token = 1};
  const auto done = comm::run_local(2, [&](comm::Communicator& c) -> base::Result<void> {
    step::Choices choices{.sequence = 4};
    ASSAY_TRY(choices.layout, step::layout_of({.dp = 1, .ep = 2}, c.rank()));
    ASSAY_TRY(const step::Program program, step::build(model, choices));
    ASSAY_TRY(const auto groups, RankGroups::make(c, choices.layout));
    const auto op = std::ranges::find(program.ops, step::OpKind::kExchangeRows, &step::Op::kind);
    for (const RowCounts& wrong :
         {RowCounts{{1, -1}, {0, 0}}, RowCounts{{3, 2}, {0, 0}}, RowCounts{{0, 0}, {1 << 30, 1}}}) {
      const auto issued = groups->issue_rows(program, *op, wrong, nullptr, nullptr);
      EXPECT_FALSE(issued.has_value());
      if (issued) continue;
      EXPECT_THAT(issued.error().line(), ::testing::HasSubstr("counts of experts"));
    }
    EXPECT_EQ(groups->rows_moved().sent_bytes, 0);
    return {};
  });
  EXPECT_TRUE(done.has_value()) << done.error().line();
}

}  // namespace
}  // namespace assay::train
