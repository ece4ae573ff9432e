// Muon: updates a matrix by its momentum, orthogonalised with a few Newton-Schulz iterations.
#pragma once

#include "step/program.h"
#include "train/cuda/kernels.h"
#include "train/cuda/matmul.h"

namespace assay::train::cuda {

void muon(Device& device, Matmul& products, const step::Program& program,
          const MuonNumbers& numbers, std::uint32_t rounding_seed, Matrix scalars, Matrix gradient,
          Matrix weight, Matrix remainder, Matrix momentum);

}  // namespace assay::train::cuda
