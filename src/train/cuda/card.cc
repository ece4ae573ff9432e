#include "train/cuda/card.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay::train::cuda {

base::Result<void> check_card(const Card& card) {
  if (card.major >= 8) return {};
  return base::fail(base::unfit_error(
      card.name, fmt::format("its compute capability is {}.{}", card.major, card.minor),
      "8.0 or later (A100, RTX 30) is required; or use --device cpu"));
}

base::Result<void> check_numerics(const Card& card, const step::Numerics& numerics) {
  if (!numerics.fp8_blocks || card.has_fp8()) return {};
  return base::fail(base::unfit_error(
      card.name,
      fmt::format("it has no fp8: its compute capability is {}.{}, and 8.9 is the first with it",
                  card.major, card.minor),
      "train.precision = \"bf16\""));
}

}  // namespace assay::train::cuda
