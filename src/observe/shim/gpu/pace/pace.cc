// The checkpoint: about once per millisecond of a thread's work on the device, and after it has
// waited for the device.
#include "observe/shim/gpu/pace/pace.h"

#include <cerrno>

#include "observe/shim/gpu/captures.h"
#include "observe/shim/gpu/pace/budgets.h"
#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/lanes.h"
#include "observe/shim/gpu/pace/marks.h"
#include "observe/shim/gpu/pace/turns.h"

namespace assay::gpu {
namespace {

// How much a thread may launch between two checkpoints, and all may have in flight: enough that the
// device is never idle while a thread is put off its processor for a moment.
constexpr std::uint64_t kQuantumNs = 1'000'000;
constexpr std::uint64_t kQuantaInFlight = 4;
// What is not known yet is taken for this: few such launches are in flight at a time, until the
// first of them has been timed.
constexpr std::uint64_t kAssumedNs = 2'000'000;
constexpr std::uint64_t kNeverKnownNs = 200'000;  // where nothing can be timed
// Where there is no limit: until limits are checked again.
constexpr std::int64_t kUnlimitedNs = 100'000'000;
// On a device without a limit, beside others that have one: a thread may go on to those next, and
// budgets are threads', not devices'.
constexpr std::int64_t kBetweenDevicesNs = 20'000;
// A promise of work is for a little longer than the estimate.
constexpr std::uint64_t kMarginNs = 200'000;
// Sleeping takes this much longer than it should; nearer than that, one polls.
constexpr std::uint64_t kNearNs = 100'000;

constexpr std::uint64_t kLongestSpinNs = 300'000;
// Polls for something that is near, but not for long: it may come later than estimated.
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

// What is in flight may itself wait for something that this thread will do next. So no
// launch waits longer than it can reasonably take while none of it is done: it is made then, turn
// or not.
constexpr std::uint64_t kStuckNs = 200'000'000;
class StuckTimeout {
 public:
  bool is_over(const Lane& lane, std::uint64_t now) {
    if (since_ == 0 || lane.count == 0 || lane.first != first_) {
      first_ = lane.first;
      since_ = now;
    }
    return now > since_ + kStuckNs + 2 * lane.scale.real(lane.marked_ns);
  }

 private:
  std::size_t first_ = 0;
  std::uint64_t since_ = 0;
};

// A lane begins with little: what its launches take may depend on more than function and grid.
std::uint64_t quantum_of(const Lane& lane) {
  return lane.has_events && lane.scale.is_new() ? kQuantumNs / 8 : kQuantumNs;
}

// Also in doubt: nothing is recorded then.
bool is_capturing(void* stream, bool per_thread) {
  auto* ask = per_thread ? helpers.is_capturing_per_thread : helpers.is_capturing;
  int status = 0;
  return ask == nullptr || ask(stream, &status) != 0 || status != 0;
}

// Sleeps until more turns than `seen` have ended, with the lane unlocked. False: another thread
// has it and does not let go.
bool rest(Lane& lane, std::uint32_t seen, std::uint64_t ns, bool spin) {
  wire::TurnDevice& device = *lane.device;
  lane.lock.unlock();
  if (spin) {
    spin_for_a_moment();
  } else {
    sleep_for(device, seen, ns);
  }
  return lane.lock.try_lock_for_a_while();
}

struct Launch {
  wire::GpuBlock& block;
  std::uint64_t cost_ns;
  void* stream;
  bool per_thread;
  std::uint64_t assumed_ns;
  bool known = true;  // its cost
};

// The turn is over: what is in flight runs out, and the next one has the device. True if it has.
bool run_out(Lane& lane, const Launch& launch, std::uint64_t now, std::uint64_t since,
             std::uint64_t& others_until) {
  if (lane.unmarked_ns > 0 && lane.has_events) {
    put_mark(lane, take_pair(lane, false, launch.stream, launch.per_thread), false, 0,
             launch.stream, launch.per_thread);
  }
  if (const std::uint64_t used = withdraw_budgets(launch.block); used > 0) {
    others_until = (lane.until > now ? lane.until : now) + lane.scale.real(used);
  }
  collect(lane, now);
  if (!is_drained(lane, now) || now < others_until) return false;
  drained(lane, now);
  lane.place->until_ns.store(now, std::memory_order_relaxed);
  // Other processes of the run see the end of the turn at their checkpoints, and say the same.
  for (const wire::TurnProcess& other : lane.device->runs[lane.row].processes) {
    const std::uint64_t until = other.until_ns.load(std::memory_order_relaxed);
    const bool busy = until > now && until < now + wire::kTurnPromiseNs;
    if (&other != lane.place && busy && now < since + kStuckNs) return false;
  }
  if (end_turn(*lane.device, lane.row, now)) wake_waiters(*lane.device);
  return true;
}

// Until the launch may be made. The lane stays locked, unless that could not be had: false.
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
    const wire::Turn turn = take_turn(*lane.device, lane.row, now, is_process_alive);
    if (!turn.mine) {
      if (waits_since == 0) waits_since = now;
      locked = rest(lane, seen, turn.again_ns > now ? turn.again_ns - now : 0, false);
      continue;
    }
    const std::uint64_t ahead = ahead_of(lane, now);
    const std::uint64_t next = ahead == 0 ? 0 : kQuantumNs / 2;
    const wire::TurnAnswer answer = may_go_on(*lane.device, lane.row, now, ahead + next);
    std::uint64_t wanted = 0;  // how much has to run first
    if (answer == wire::TurnAnswer::kGo) {
      const std::uint64_t with_it = ahead + lane.scale.real(launch.cost_ns);
      const std::uint64_t most = kQuantaInFlight * (launch.known ? quantum_of(lane) : kQuantumNs);
      if (ahead == 0 || with_it <= most) break;
      wanted = with_it - most;
      if (wanted > ahead) wanted = ahead;
    } else {
      if (waits_since == 0) waits_since = now;
      if (answer == wire::TurnAnswer::kLost ||
          run_out(lane, launch, now, waits_since, others_until)) {
        continue;
      }
      wanted = ahead;
    }
    if (ahead > 0) {
      lane.place->until_ns.store(now + ahead + kMarginNs, std::memory_order_relaxed);
    }
    // Half of it, and look again: nothing is so well known that the device should be idle for it.
    const bool near = wanted <= kNearNs;
    const std::uint64_t longest = quantum_of(lane) < kQuantumNs ? kNearNs : wanted / 2;
    locked = rest(lane, seen, near ? kNearNs / 2 : longest, polling.may_go_on(near, now));
  }
  if (waits_since != 0 && lane.line < wire::kGpuDevices) {
    region()->devices[lane.line].waited_ns.fetch_add(now_ns() - waits_since,
                                                     std::memory_order_relaxed);
  }
  return locked;
}

// Two events around a launch cost a full queue some twenty microseconds and a host-bound thread
// some five, one behind it almost nothing. For a launch whose cost is settled, now and then is
// enough.
bool is_worth_timing(Lane& lane, const Launch& launch, std::uint32_t place) {
  constexpr std::uint32_t kOneOf = 4;
  return !launch.known || !is_settled(place) || ++lane.checkpoints % kOneOf == 0;
}

// How much may be launched until the next checkpoint: a millisecond of the device's time, or of the
// host's if that is what the thread needs for its launches. A thread that is seldom at its
// checkpoint would not see the end of its turn, and would seem to be idle.
std::int64_t next_budget(const Lane& lane, const Used& used, std::uint64_t now) {
  constexpr std::uint64_t kLeastPart = 16;
  const std::uint64_t quantum = quantum_of(lane);
  const std::uint64_t real = lane.scale.real(used.estimated_ns);
  const std::uint64_t passed = now - used.since_ns;
  std::uint64_t next = quantum;
  if (real > 0 && passed > real) next = quantum * real / passed;
  if (next < quantum / kLeastPart) next = quantum / kLeastPart;
  return static_cast<std::int64_t>(lane.scale.estimated(next));
}

Ticket enter(Lane& lane, Launch launch, std::uint32_t place, const Used& used) {
  if (!lane.lock.try_lock_for_a_while()) return {};
  Ticket ticket;
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
    const bool marked =
        !launch.known || lane.scale.real(lane.unmarked_ns + launch.cost_ns) >= quantum_of(lane) / 2;
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
  return ticket.pair >= 0 ? ticket : Ticket{};
}

}  // namespace

Ticket before_launch(const Work& work, std::uint32_t subtracted) {
  const int error = errno;
  wire::GpuBlock& mine = block();
  check_limits();
  if (!pacing.load(std::memory_order_relaxed)) {
    grant(mine, kUnlimitedNs, 0);
    return {};
  }
  const Used used = used_since(mine, subtracted, now_ns());
  grant(mine, static_cast<std::int64_t>(kQuantumNs), now_ns());
  const HarmlessToCaptures harmless;
  Ticket ticket;
  // What is captured runs with its graph, and is paced there.
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

void after_launch(const Ticket& ticket) {
  if (ticket.lane == nullptr) return;
  const int error = errno;
  const HarmlessToCaptures harmless;
  if (ticket.lane->lock.try_lock_for_a_while()) {
    put_mark(*ticket.lane, ticket.pair, ticket.timed, ticket.place, ticket.stream,
             ticket.per_thread);
    ticket.lane->lock.unlock();
  }
  give_back(*ticket.lane);
  errno = error;
}

void after_wait(std::uint64_t from_ns, bool whole_context) {
  const int error = errno;
  const HarmlessToCaptures harmless;
  wire::GpuBlock& mine = block();
  Lane* lane = take_lane();
  if (lane == nullptr) return;
  if (lane->lock.try_lock_for_a_while()) {
    const std::uint64_t now = now_ns();
    if (is_limited(*lane, now)) {
      const Used used = used_since(mine, 0, from_ns);
      add_work(*lane, used.estimated_ns, used.since_ns);
      grant(mine, 0, now);
      collect(*lane, now);
      constexpr std::uint64_t kReallyNs = 20'000;  // it would return at once if all had run before
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
