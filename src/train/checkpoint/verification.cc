#include "train/checkpoint/verification.h"

namespace assay::checkpoint {

Verification::Verification(Checkpoint of, std::vector<std::string> parts)
    : thread_([this, of = std::move(of), parts = std::move(parts)](const std::stop_token& stop) {
        outcome_ = of.verify({.parts = parts, .stop = stop});
      }) {}

Verification::~Verification() = default;

base::Result<void> Verification::finish() {
  thread_.join();
  return std::move(outcome_);
}

}  // namespace assay::checkpoint
