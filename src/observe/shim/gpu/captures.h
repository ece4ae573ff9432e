// Driver queries by the library that do not invalidate stream captures.
#pragma once

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

// While one of these exists, driver calls of this thread invalidate no capture, neither its own
// nor, in the default mode, those of other threads.
class RelaxedCaptureMode {
 public:
  RelaxedCaptureMode() {
    known_ = helpers.exchange_capture_mode != nullptr && helpers.exchange_capture_mode(&mode_) == 0;
  }
  ~RelaxedCaptureMode() {
    if (known_) helpers.exchange_capture_mode(&mode_);
  }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  static constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  int mode_ = kRelaxed;
  bool known_ = false;
};

}  // namespace assay::gpu
