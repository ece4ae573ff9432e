// Driver queries by the library that do not invalidate stream captures.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// While one of these exists, driver calls of this thread invalidate no capture, neither its own
// nor, in the default mode, those of other threads.
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
