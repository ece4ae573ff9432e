// Captures, and what ends them. Modes are as CUstreamCaptureMode. What might block ends captures
// unless it is known to be harmless: a thread in the global mode ends its own and all that are
// global, one in the second its own.
#pragma once

#include "driver.h"

namespace fakecuda {

enum Mode : int { kGlobal = 0, kOwnThread = 1, kRelaxed = 2 };
constexpr int kUnsupported = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kInvalidated = 901;

inline constinit thread_local int thread_mode = kGlobal;

// Whether what this thread does just now ends a capture.
bool ends_captures();
int begin_capture(int mode);
int end_capture(void** graph);

}  // namespace fakecuda

#ifdef FAKECUDA_BARE
#define UNSAFE()
#else
#define UNSAFE() \
  if (fakecuda::ends_captures()) return fakecuda::kUnsupported
#endif
