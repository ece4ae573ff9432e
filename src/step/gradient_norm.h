// GradientNorm: the norm of all gradients. Each rank squares what it has summed; the sums of
// squares are gathered by all ranks and added in the order of the model's parameters, whatever the
// layout.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"

namespace assay::step {

class GradientNorm {
 public:
  explicit GradientNorm(Builder& b)
      : b_(b), p_(b.program()), data_(p_.choices.layout.data()), block_(norm_block(p_.model)) {}

  // Call first: determines where the sums go.
  void measure_squares();
  // Call when the unit's gradients are complete.
  void square(std::size_t index);
  // Call when all units have been squared.
  void find_norm();

 private:
  // The sums of squares of a unit's blocks, within a rank's vector of sums.
  struct SumsPlace {
    std::int64_t first = 0;
    std::int64_t count = 0;  // for the rank with the most
  };

  [[nodiscard]] std::vector<SumsPlace> sums_places() const;
  [[nodiscard]] std::size_t model_unit(const Unit& unit) const;
  void square(std::size_t index, const View& sums);
  [[nodiscard]] std::vector<View> of_tensor_rank(std::size_t unit, std::int64_t rank,
                                                 const SumsPlace& place, const View& rows) const;
  [[nodiscard]] std::size_t copies_of(const Unit& unit) const;
  [[nodiscard]] std::int64_t data_rank(const Unit& unit, std::size_t i) const;
  [[nodiscard]] std::vector<View> in_order(const std::vector<SumsPlace>& places,
                                           const View& everyones) const;

  Builder& b_;
  Program& p_;
  AxisPosition data_;
  std::int64_t block_;
  std::vector<SumsPlace> places_;  // for each unit of the model
  View squares_;                   // of this rank
};

}  // namespace assay::step
