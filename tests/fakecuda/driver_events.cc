// Events, and waiting for work.
#include <algorithm>

#include "clock.h"
#include "driver.h"

using namespace fakecuda;

namespace {

int wait_for_kernels() {
#ifndef FAKECUDA_BARE
  fake::Memory::the().settle_pools();
#endif
  if (driver().launch_ns != 0) fakecuda::wait_until_done();
  return kOk;
}

struct Event {
  std::uint64_t place = 0;
  std::uint64_t recorded = 0;
  std::uint64_t done = 0;  // set at the first query: the clock forgets
};
// An event in a capturing stream is a graph node: its time cannot be queried.
int record(void* event) {
#ifndef FAKECUDA_BARE
  if (capturing != nullptr) return add_node(nullptr, capturing, 5);
  const std::uint64_t place = fakecuda::submit(driver().event_ns);
  *static_cast<Event*>(event) = {place, fakecuda::now_ns(), 0};
#endif
  (void)event;
  return kOk;
}
// When everything before the event had run; 0: not yet.
std::uint64_t time_of(void* event) {
#ifdef FAKECUDA_BARE
  (void)event;
  return 1;
#else
  auto* of = static_cast<Event*>(event);
  if (of->done == 0) {
    const std::uint64_t done = fakecuda::done_at(of->place);
    of->done = done == 0 ? 0 : std::max(done, of->recorded);
  }
  return of->done;
#endif
}
int elapsed(float* milliseconds, void* from, void* to) {
  const std::uint64_t begin = time_of(from);
  const std::uint64_t end = time_of(to);
  if (begin == 0 || end == 0) return kNotReady;
  *milliseconds =
      static_cast<float>(static_cast<double>(static_cast<std::int64_t>(end - begin)) / 1e6);
  return kOk;
}

}  // namespace

extern "C" {

#define SYNCHRONISE(symbol)    \
  int symbol() {               \
    count(k_##symbol);         \
    return wait_for_kernels(); \
  }
SYNCHRONISE(cuCtxSynchronize)
SYNCHRONISE(cuStreamSynchronize)
SYNCHRONISE(cuStreamSynchronize_ptsz)
SYNCHRONISE(cuEventSynchronize)

// Events: a position in the queue of work, and when they were recorded.
int cuEventCreate(void** event, unsigned) {
  count(k_cuEventCreate);
  static const bool none = setting("FAKECUDA_NO_EVENTS", 0) != 0;
  if (none) return kOutOfMemory;
  *event = new Event{};
  return kOk;
}
int cuEventDestroy_v2(void* event) {
  count(k_cuEventDestroy_v2);
  delete static_cast<Event*>(event);
  return kOk;
}
int cuEventRecord(void* event, void*) {
  count(k_cuEventRecord);
  return record(event);
}
int cuEventRecord_ptsz(void* event, void*) {
  count(k_cuEventRecord_ptsz);
  return record(event);
}
int cuEventQuery(void* event) {
  count(k_cuEventQuery);
  return time_of(event) == 0 ? kNotReady : kOk;
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  count(k_cuEventElapsedTime);
  return elapsed(milliseconds, from, to);
}
int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) {
  count(k_cuEventElapsedTime_v2);
  return elapsed(milliseconds, from, to);
}
}
