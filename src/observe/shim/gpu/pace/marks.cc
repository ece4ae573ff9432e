#include "observe/shim/gpu/pace/marks.h"

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/turns.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

constexpr Result kNotReady = 600;
constexpr int kTimeout = 16;  // failures after which a lane stops using events

Result record(void* event, void* stream, bool per_thread) {
  return (per_thread ? helpers.event_record_ptsz : helpers.event_record)(event, stream);
}

bool elapsed(void* from, void* to, double& ns) {
  float milliseconds = 0;
  if (helpers.event_elapsed(&milliseconds, from, to) != 0) return false;
  ns = static_cast<double>(milliseconds) * 1e6;
  return true;
}

// A mark was passed; `alone_ns` is the time of its last launch between two events, if it was timed.
// If the device was never idle, the time since the previous mark's end is the time of this mark's
// work.
void mark_passed(Lane& lane, const Mark& mark, double alone_ns) {
  Pair* before = lane.passed < 0 ? nullptr : &lane.pairs[lane.passed];
  double took_ns = 0;
  const bool has_time =
      before != nullptr && elapsed(before->end, lane.pairs[mark.pair].end, took_ns);
  if (has_time && took_ns < 0) {
    // Marks in different streams, of which this one finished first: its work was done in the time
    // of the one before it, and the next stretch is compared with the work of both.
    lane.overtaken_ns += mark.cost_ns;
    lane.pairs[mark.pair].taken = false;
    return;
  }
  if (has_time && mark.known && mark.cost_ns > 0) {
    const auto estimated = static_cast<double>(mark.cost_ns + lane.overtaken_ns);
    if (mark.follows) {
      lane.correction.learn(took_ns, estimated);
    } else {
      lane.correction.learn_upper_bound(mark.is_one && alone_ns >= 0 ? alone_ns : took_ns,
                                        estimated);
    }
  }
  lane.overtaken_ns = 0;
  if (before != nullptr) before->taken = false;
  lane.passed = mark.pair;
}

}  // namespace

void add_work(Lane& lane, std::uint64_t ns, std::uint64_t since, bool known) {
  if (ns == 0) return;
  lane.unmarked_ns += ns;
  lane.unmarked_known = lane.unmarked_known && known;
  ++lane.unmarked_parts;
  lane.until = (lane.until > since ? lane.until : since) + lane.correction.real(ns);
  if (lane.busy_from == 0) lane.busy_from = since;
}

void collect(Lane& lane, std::uint64_t now) {
  const double before = lane.correction.times();
  while (lane.count > 0) {
    const Mark mark = lane.marks[lane.first];
    Pair& pair = lane.pairs[mark.pair];
    const Result passed = helpers.event_query(pair.end);
    if (passed == kNotReady) break;
    if (passed != 0) {
      reset_events(lane);
      return;
    }
    double ns = -1;
    if (mark.timed && elapsed(pair.begin, pair.end, ns) && ns >= 0) learn_cost(mark.place, ns);
    mark_passed(lane, mark, ns);
    lane.marked_ns -= mark.cost_ns < lane.marked_ns ? mark.cost_ns : lane.marked_ns;
    lane.first = (lane.first + 1) % kMarks;
    --lane.count;
  }
  if (lane.until > now && lane.correction.times() != before) {
    const double left = static_cast<double>(lane.until - now) * lane.correction.times() / before;
    lane.until = now + static_cast<std::uint64_t>(left);
  }
  const std::uint64_t most = now + lane.correction.real(lane.marked_ns + lane.unmarked_ns);
  if (lane.until > most) lane.until = most;  // the work was faster than expected
}

std::uint64_t ahead_of(const Lane& lane, std::uint64_t now) {
  constexpr std::uint64_t kLateNs = 50'000;  // running longer than estimated by this much
  const std::uint64_t left = lane.until > now ? lane.until - now : 0;
  return lane.count > 0 && left < kLateNs ? kLateNs : left;
}

bool is_drained(const Lane& lane, std::uint64_t now) {
  return lane.count == 0 && (lane.unmarked_ns == 0 || now >= lane.until);
}

void drained(Lane& lane, std::uint64_t at) {
  lane.unmarked_ns = 0;
  lane.unmarked_known = true;
  lane.unmarked_parts = 0;
  lane.until = at;
}

void settle(Lane& lane, std::uint64_t now) {
  if (lane.busy_from == 0) return;
  const bool busy = lane.count > 0 || (lane.unmarked_ns > 0 && now < lane.until);
  const std::uint64_t to = busy || now < lane.until ? now : lane.until;
  const std::uint64_t charged = charge_turn(*lane.device, lane.row, lane.busy_from, to);
  region()->devices[lane.device_index].busy_ns.fetch_add(charged, std::memory_order_relaxed);
  lane.busy_from = busy ? now : 0;
}

int take_pair(Lane& lane, bool timed, void* stream, bool per_thread) {
  if (!lane.has_events || lane.count + 4 > kMarks) return -1;
  for (std::size_t i = 0; i < kMarks; ++i) {
    Pair& pair = lane.pairs[i];
    if (pair.taken) continue;
    constexpr unsigned kTiming = 0;
    if ((pair.begin == nullptr && helpers.event_create(&pair.begin, kTiming) != 0) ||
        (pair.end == nullptr && helpers.event_create(&pair.end, kTiming) != 0) ||
        (timed && record(pair.begin, stream, per_thread) != 0)) {
      reset_events(lane);
      return -1;
    }
    pair.taken = true;
    return static_cast<int>(i);
  }
  return -1;
}

void put_mark(Lane& lane, int pair, bool timed, std::uint32_t place, void* stream,
              bool per_thread) {
  if (pair < 0 || !lane.has_events || lane.pairs[pair].end == nullptr) return;
  if (record(lane.pairs[pair].end, stream, per_thread) != 0) {
    reset_events(lane);
    return;
  }
  bool follows = false;
  if (lane.count > 0) {
    const Mark& last = lane.marks[(lane.first + lane.count - 1) % kMarks];
    follows = helpers.event_query(lane.pairs[last.pair].end) == kNotReady;
  }
  lane.marks[(lane.first + lane.count) % kMarks] = {.pair = pair,
                                                    .cost_ns = lane.unmarked_ns,
                                                    .place = place,
                                                    .timed = timed,
                                                    .follows = follows,
                                                    .known = lane.unmarked_known,
                                                    .is_one = timed && lane.unmarked_parts == 1};
  ++lane.count;
  lane.marked_ns += lane.unmarked_ns;
  lane.unmarked_ns = 0;
  lane.unmarked_known = true;
  lane.unmarked_parts = 0;
}

void reset_events(Lane& lane) {
  for (Pair& pair : lane.pairs) pair = {};
  lane.first = lane.count = 0;
  lane.passed = -1;
  lane.unmarked_ns += lane.marked_ns;
  lane.marked_ns = 0;
  if (++lane.failures < kTimeout || !lane.has_events) return;
  lane.has_events = false;
  log_line("CUDA events fail: shares are enforced by estimates alone");
}

}  // namespace assay::gpu
