// Captures, and what invalidates them. Modes are those of CUstreamCaptureMode. A call that might
// block invalidates captures unless it is known to be harmless: in global mode those of the thread
// and all global ones, in thread-local mode only those of the thread.
#pragma once

#include "driver.h"

namespace fakecuda {

enum Mode : int { kGlobal = 0, kOwnThread = 1, kRelaxed = 2 };
constexpr int kUnsupported = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kInvalidated = 901;

inline constinit thread_local int thread_mode = kGlobal;

// Whether a possibly blocking call of this thread invalidates a capture now.
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
