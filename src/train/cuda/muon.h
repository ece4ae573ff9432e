// Muon: the momentum of a matrix, made orthogonal by a few steps of a Newton-Schulz iteration, is
// the direction it moves in.
#pragma once

#include "step/program.h"
#include "train/cuda/kernels.h"
#include "train/cuda/matmul.h"

namespace assay::train::cuda {

void muon(Device& device, Matmul& products, const step::Program& program,
          const MuonNumbers& numbers, Matrix scalars, Matrix gradient, Matrix weight,
          Matrix remainder, Matrix momentum);

}  // namespace assay::train::cuda
