#include "driver_captures.h"

#include <utility>

using namespace fakecuda;

namespace fakecuda {
namespace {

constinit thread_local int capture_mode = kRelaxed;
constinit thread_local std::uint64_t capture_begun = 0;
constinit thread_local bool own_capture_ended = false;
std::atomic<int> global_captures{0};
std::atomic<std::uint64_t> ended_captures{0};  // captures begun before this time are invalid
std::atomic<std::uint64_t> capture_date{1};

}  // namespace

bool ends_captures() {
  if (thread_mode == kRelaxed) return false;
  const bool own = capturing != nullptr && capture_mode != kRelaxed;
  const bool others = thread_mode == kGlobal && global_captures.load() > 0;
  if (own) own_capture_ended = true;
  if (others) ended_captures = capture_date.fetch_add(1);
  return own || others;
}

int begin_capture(int mode) {
  capturing = new Graph;
  capture_mode = mode;
  capture_begun = capture_date.fetch_add(1);
  own_capture_ended = false;
  if (mode == kGlobal) ++global_captures;
  return kOk;
}

int end_capture(void** graph) {
  *graph = capturing;
  capturing = nullptr;
  if (capture_mode == kGlobal) --global_captures;
  const bool ended =
      own_capture_ended || (capture_mode == kGlobal && ended_captures.load() > capture_begun);
  if (ended) *graph = nullptr;
  return ended ? kInvalidated : kOk;
}

}  // namespace fakecuda
