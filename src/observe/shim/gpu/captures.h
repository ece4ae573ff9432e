// Streams that are being captured, and what the library asks the driver meanwhile.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// As long as one of these lives, what this thread asks the driver ends no capture, neither its own
// nor, in the mode that is the usual one, those of other threads.
class HarmlessToCaptures {
 public:
  HarmlessToCaptures() {
    known_ = helpers.exchange_capture_mode != nullptr && helpers.exchange_capture_mode(&mode_) == 0;
  }
  ~HarmlessToCaptures() {
    if (known_) helpers.exchange_capture_mode(&mode_);
  }
  HarmlessToCaptures(const HarmlessToCaptures&) = delete;
  HarmlessToCaptures& operator=(const HarmlessToCaptures&) = delete;

 private:
  static constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  int mode_ = kRelaxed;
  bool known_ = false;
};

}  // namespace assay::gpu
