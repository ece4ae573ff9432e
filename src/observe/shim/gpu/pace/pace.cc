// The pacing point: reached about once per millisecond of a thread's work on the device, and after
// a synchronization.
#include "observe/shim/gpu/pace/pace.h"

#include <cerrno>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/pace/budgets.h"
#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/lanes.h"
#include "observe/shim/gpu/pace/marks.h"
#include "observe/shim/gpu/pace/paced.h"
#include "observe/shim/gpu/pace/turns.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

// How much a thread may launch between two pacing points, and all threads may have in flight:
// enough that the device does not become idle while a thread is briefly descheduled.
constexpr std::uint64_t kQuantumNs = 1'000'000;
constexpr std::uint64_t kQuantaInFlight = 4;
// Assumed cost of unknown work: few such launches are in flight at a time, until the first has been
// timed.
constexpr std::uint64_t kAssumedNs = 2'000'000;
constexpr std::uint64_t kNeverKnownNs = 200'000;  // if nothing can be timed
// Without a limit: budget until limits are checked again.
constexpr std::int64_t kUnlimitedNs = 100'000'000;
// On a device without a limit, if other devices have one: a thread may switch to those, and budgets
// belong to threads, not devices.
constexpr std::int64_t kBetweenDevicesNs = 20'000;
// Promised durations exceed the estimate by this much.
constexpr std::uint64_t kMarginNs = 200'000;
// Sleeps end this much late; shorter waits poll instead.
constexpr std::uint64_t kNearNs = 100'000;

constexpr std::uint64_t kLongestSpinNs = 300'000;
// Polls when the expected end is near, but not for long: it may come later than estimated.
class Polling {
 public:
  bool may_go_on(bool near, std::uint64_t now) {
    if (!near) since_ = 0;
    if (near && since_ == 0) since_ = now;
    return near && now < since_ + kLongestSpinNs;
  }

 private:
  std::uint64_t since_ = 0;
};

// Work in flight may itself wait for this thread's next action. So if nothing finishes for longer
// than is plausible, the launch is made, whether or not it is the run's turn.
constexpr std::uint64_t kStuckNs = 200'000'000;
class StuckTimeout {
 public:
  bool is_over(const Lane& lane, std::uint64_t now) {
    if (since_ == 0 || lane.count == 0 || lane.first != first_) {
      first_ = lane.first;
      since_ = now;
    }
    return now > since_ + kStuckNs + 2 * lane.correction.real(lane.marked_ns);
  }

 private:
  std::size_t first_ = 0;
  std::uint64_t since_ = 0;
};

// A lane starts with a small quantum: the time of its launches may depend on more than function and
// grid.
std::uint64_t quantum_of(const Lane& lane) {
  return lane.has_events && lane.correction.is_new() ? kQuantumNs / 8 : kQuantumNs;
}

// True if unknown, too: then no event is recorded.
bool is_capturing(void* stream, bool per_thread) {
  auto* query = per_thread ? helpers.is_capturing_per_thread : helpers.is_capturing;
  int status = 0;
  return query == nullptr || query(stream, &status) != 0 || status != 0;
}

// Sleeps until more turns than `seen` have ended, with the lane unlocked. False: the lane could not
// be locked again.
bool rest(Lane& lane, std::uint32_t seen, std::uint64_t ns, bool spin) {
  TurnDevice& device = *lane.device;
  lane.lock.unlock();
  if (spin) {
    spin_briefly();
  } else {
    sleep_for(device, seen, ns);
  }
  return lane.lock.try_lock_bounded();
}

struct Launch {
  wire::GpuBlock& block;
  std::uint64_t cost_ns;
  void* stream;
  bool per_thread;
  std::uint64_t assumed_ns;
  bool known = true;  // whether the cost is known
};

// Ends the turn: waits for the work in flight, then wakes the next run. True if the turn has ended.
bool run_out(Lane& lane, const Launch& launch, std::uint64_t now, std::uint64_t since,
             std::uint64_t& others_until) {
  if (lane.unmarked_ns > 0 && lane.has_events) {
    put_mark(lane, take_pair(lane, false, launch.stream, launch.per_thread), false, 0,
             launch.stream, launch.per_thread);
  }
  if (const std::uint64_t used = withdraw_budgets(launch.block); used > 0) {
    others_until = (lane.until > now ? lane.until : now) + lane.correction.real(used);
  }
  collect(lane, now);
  if (!is_drained(lane, now) || now < others_until) return false;
  drained(lane, now);
  lane.place->until_ns.store(now, std::memory_order_relaxed);
  // Other processes of the run reach the same conclusion at their pacing points.
  for (const TurnProcess& other : lane.device->runs[lane.row].processes) {
    const std::uint64_t until = other.until_ns.load(std::memory_order_relaxed);
    const bool busy = until > now && until < now + kTurnPromiseNs;
    if (&other != lane.place && busy && now < since + kStuckNs) return false;
  }
  if (end_turn(*lane.device, lane.row, now)) wake_waiters(*lane.device);
  return true;
}

// Waits until the launch may be made. The lane stays locked. False: it could not be locked again.
bool wait_for_turn(Lane& lane, const Launch& launch) {
  std::uint64_t waits_since = 0;
  std::uint64_t others_until = 0;
  StuckTimeout stuck;
  Polling polling;
  bool locked = true;
  while (locked) {
    const std::uint64_t now = now_ns();
    if (!is_limited(lane, now)) break;
    collect(lane, now);
    settle(lane, now);
    if (stuck.is_over(lane, now)) break;
    const std::uint32_t seen = lane.device->ended.load(std::memory_order_acquire);
    const Turn turn = take_turn(*lane.device, lane.row, now, is_process_alive);
    if (!turn.mine) {
      if (waits_since == 0) waits_since = now;
      locked = rest(lane, seen, turn.again_ns > now ? turn.again_ns - now : 0, false);
      continue;
    }
    const std::uint64_t ahead = ahead_of(lane, now);
    const std::uint64_t next = ahead == 0 ? 0 : kQuantumNs / 2;
    const TurnDecision answer = may_go_on(*lane.device, lane.row, now, ahead + next);
    std::uint64_t wanted = 0;  // work that has to finish first
    if (answer == TurnDecision::kGo) {
      const std::uint64_t with_it = ahead + lane.correction.real(launch.cost_ns);
      const std::uint64_t most = kQuantaInFlight * (launch.known ? quantum_of(lane) : kQuantumNs);
      if (ahead == 0 || with_it <= most) break;
      wanted = with_it - most;
      if (wanted > ahead) wanted = ahead;
    } else {
      if (waits_since == 0) waits_since = now;
      if (answer == TurnDecision::kLost || run_out(lane, launch, now, waits_since, others_until)) {
        continue;
      }
      wanted = ahead;
    }
    if (ahead > 0) {
      lane.place->until_ns.store(now + ahead + kMarginNs, std::memory_order_relaxed);
    }
    // Sleeps half of that and checks again: estimates are not accurate enough to risk an idle
    // device.
    const bool near = wanted <= kNearNs;
    const std::uint64_t longest = quantum_of(lane) < kQuantumNs ? kNearNs : wanted / 2;
    locked = rest(lane, seen, near ? kNearNs / 2 : longest, polling.may_go_on(near, now));
  }
  if (waits_since != 0 && lane.device_index < wire::kGpuDevices) {
    region()->devices[lane.device_index].waited_ns.fetch_add(now_ns() - waits_since,
                                                             std::memory_order_relaxed);
  }
  return locked;
}

// Two events around a launch cost a full queue about twenty microseconds and a host-bound thread
// about five, one after it almost nothing. A launch with a settled cost is timed only from time to
// time.
bool is_worth_timing(Lane& lane, const Launch& launch, std::uint32_t place) {
  constexpr std::uint32_t kOneOf = 4;
  return !launch.known || !is_settled(place) || ++lane.pacing_points % kOneOf == 0;
}

// Budget until the next pacing point: a millisecond of device time, or of host time if the thread's
// launches take longer than their execution. A thread that rarely reaches its pacing point would
// miss the end of its turn, and would seem idle.
std::int64_t next_budget(const Lane& lane, const BudgetUse& used, std::uint64_t now) {
  constexpr std::uint64_t kLeastPart = 16;
  const std::uint64_t quantum = quantum_of(lane);
  const std::uint64_t real = lane.correction.real(used.estimated_ns);
  const std::uint64_t passed = now - used.since_ns;
  std::uint64_t next = quantum;
  if (real > 0 && passed > real) next = quantum * real / passed;
  if (next < quantum / kLeastPart) next = quantum / kLeastPart;
  return static_cast<std::int64_t>(lane.correction.estimated(next));
}

LaunchTicket enter(Lane& lane, Launch launch, std::uint32_t place, const BudgetUse& used) {
  if (!lane.lock.try_lock_bounded()) return {};
  LaunchTicket ticket;
  launch.known = launch.cost_ns != kUnknownCost;
  if (!launch.known) {
    launch.cost_ns = launch.assumed_ns != 0 ? launch.assumed_ns
                     : lane.has_events      ? kAssumedNs
                                            : kNeverKnownNs;
  }
  std::int64_t budget = kBetweenDevicesNs;
  if (is_limited(lane, now_ns())) {
    add_work(lane, used.estimated_ns, used.since_ns);
    collect(lane, now_ns());
    budget = next_budget(lane, used, now_ns());
    if (!wait_for_turn(lane, launch)) return {};
  }
  if (lane.limited) {
    const std::uint64_t now = now_ns();
    const bool marked = !launch.known || lane.correction.real(lane.unmarked_ns + launch.cost_ns) >=
                                             quantum_of(lane) / 2;
    ticket = {&lane, place, -1, false, launch.stream, launch.per_thread};
    if (marked) {
      ticket.timed = is_worth_timing(lane, launch, place);
      ticket.pair = take_pair(lane, ticket.timed, launch.stream, launch.per_thread);
    }
    add_work(lane, launch.cost_ns, now, launch.known);
    lane.place->until_ns.store(lane.until + kQuantumNs + kMarginNs, std::memory_order_relaxed);
  }
  grant(launch.block, lane.limited ? budget : kBetweenDevicesNs, now_ns());
  lane.lock.unlock();
  return ticket.pair >= 0 ? ticket : LaunchTicket{};
}

}  // namespace

LaunchTicket before_launch(const GpuWorkItem& work, std::uint32_t subtracted) {
  const int error = errno;
  wire::GpuBlock& mine = block();
  check_limits();
  if (!pacing.load(std::memory_order_relaxed)) {
    grant(mine, kUnlimitedNs, 0);
    return {};
  }
  const BudgetUse used = used_since(mine, subtracted, now_ns());
  grant(mine, static_cast<std::int64_t>(kQuantumNs), now_ns());
  const RelaxedCaptureMode harmless;
  LaunchTicket ticket;
  // Captured work runs with its graph and is paced there.
  Lane* lane = is_capturing(work.stream, work.per_thread) ? nullptr : take_lane();
  if (lane != nullptr) {
    ticket =
        enter(*lane, {mine, cost_of(work.place), work.stream, work.per_thread, work.assumed_ns},
              work.place, used);
    if (ticket.lane == nullptr) give_back(*lane);
  }
  errno = error;
  return ticket;
}

void after_launch(const LaunchTicket& ticket) {
  if (ticket.lane == nullptr) return;
  const int error = errno;
  const RelaxedCaptureMode harmless;
  if (ticket.lane->lock.try_lock_bounded()) {
    put_mark(*ticket.lane, ticket.pair, ticket.timed, ticket.place, ticket.stream,
             ticket.per_thread);
    ticket.lane->lock.unlock();
  }
  give_back(*ticket.lane);
  errno = error;
}

void after_wait(std::uint64_t from_ns, bool whole_context) {
  const int error = errno;
  const RelaxedCaptureMode harmless;
  wire::GpuBlock& mine = block();
  Lane* lane = take_lane();
  if (lane == nullptr) {
    errno = error;
    return;
  }
  if (lane->lock.try_lock_bounded()) {
    const std::uint64_t now = now_ns();
    if (is_limited(*lane, now)) {
      const BudgetUse used = used_since(mine, 0, from_ns);
      add_work(*lane, used.estimated_ns, used.since_ns);
      grant(mine, 0, now);
      collect(*lane, now);
      constexpr std::uint64_t kReallyNs =
          20'000;  // a wait shorter than this means that nothing was in flight
      if (whole_context || lane->count == 0) {
        drained(*lane, now > from_ns + kReallyNs || lane->until > now ? now : lane->until);
        lane->place->until_ns.store(now, std::memory_order_relaxed);
      }
      settle(*lane, now);
    }
    lane->lock.unlock();
  }
  give_back(*lane);
  errno = error;
}

}  // namespace assay::gpu
