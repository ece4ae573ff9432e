#include "observe/shim/gpu/pace/turn_rules.h"

#include <algorithm>

namespace assay::gpu {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::int64_t kDeepestDebtNs = 10'000'000'000;
constexpr std::uint64_t kLookAgainNs = 1'000'000;

constexpr std::uint64_t holder_word(std::uint64_t time_ns, std::size_t row) {
  return (time_ns / 1000) << 8U | ((row + 1) & 0xFF);
}
constexpr std::uint64_t kNoRow = static_cast<std::uint64_t>(-1);
constexpr std::uint64_t time_in(std::uint64_t word) {
  return (word >> 8U) * 1000;
}
// Credit is filled up to one and a half times the run's part of a period; more would allow a burst.
// A run that has been waiting or launching all the time may have more, because others may have held
// the device for long with one kernel.
void fill(TurnRun& run, std::uint64_t now) {
  std::uint64_t filled = run.filled_ns.load(kRelaxed);
  if (is_absurd(filled, now)) run.filled_ns.compare_exchange_strong(filled, now);
  if (now <= filled || !run.filled_ns.compare_exchange_strong(filled, now)) return;
  const std::uint64_t passed = std::min<std::uint64_t>(now - filled, kTurnForgottenNs);
  const auto more =
      static_cast<std::int64_t>(passed * run.share.load(kRelaxed) / wire::kGpuWholeShare);
  const std::uint64_t part = turn_part(run);
  const auto most = static_cast<std::int64_t>(passed < kTurnFreshNs ? 6 * part : part * 3 / 2);
  std::int64_t credit = run.credit_ns.load(kRelaxed);
  while (!run.credit_ns.compare_exchange_weak(
      credit, std::clamp(credit + more, -kDeepestDebtNs, std::max(most, credit)))) {
  }
}

// Whether the run has enough credit for a worthwhile turn, computed for now without storing it.
std::int64_t credit_at(const TurnRun& run, std::uint64_t now) {
  const std::uint64_t filled = run.filled_ns.load(kRelaxed);
  const std::uint64_t passed = now > filled ? std::min(now - filled, kTurnForgottenNs) : 0;
  return run.credit_ns.load(kRelaxed) +
         static_cast<std::int64_t>(passed * run.share.load(kRelaxed) / wire::kGpuWholeShare);
}
bool has_credit(const TurnRun& run, std::uint64_t now) {
  return credit_at(run, now) >= static_cast<std::int64_t>(turn_part(run) / 2);
}

bool waits(const TurnRun& run, std::uint64_t now) {
  const std::uint64_t looked = run.waiting_ns.load(kRelaxed);
  return looked != 0 && run.run.load(kRelaxed) != 0 && now < looked + kTurnFreshNs &&
         !is_absurd(looked, now);
}
bool starves(const TurnRun& run, std::uint64_t now) {
  return now > run.since_ns.load(kRelaxed) + kTurnStarvingNs;
}

bool comes_before(const TurnRun& a, const TurnRun& b, std::uint64_t now) {
  const bool a_starves = starves(a, now);
  if (a_starves != starves(b, now)) return a_starves;
  const std::uint32_t a_priority = a.priority.load(kRelaxed);
  const std::uint32_t b_priority = b.priority.load(kRelaxed);
  if (a_priority != b_priority) return a_priority > b_priority;
  const std::uint64_t a_paid = a.paid_ns.load(kRelaxed);
  const std::uint64_t b_paid = b.paid_ns.load(kRelaxed);
  return a_paid != b_paid ? a_paid < b_paid : &a < &b;
}

// How many runs come before this one; kNoTurnRow: it is not entitled to a turn now.
std::size_t place_of(const TurnDevice& device, std::size_t row, std::uint64_t now) {
  const TurnRun& mine = device.runs[row];
  const bool credit = has_credit(mine, now);
  if (!credit && mine.borrow.load(kRelaxed) == 0) return kNoTurnRow;
  std::size_t place = 0;
  for (const TurnRun& other : device.runs) {
    if (&other == &mine || !waits(other, now)) continue;
    const bool others_credit = has_credit(other, now);
    if (others_credit && !credit) return kNoTurnRow;
    if (!others_credit && (credit || other.borrow.load(kRelaxed) == 0)) continue;
    if (comes_before(other, mine, now)) ++place;
  }
  return place;
}

// End of the run's work on the device, as reported by its processes.
std::uint64_t busy_until(TurnRun& run, std::uint64_t now, bool (*is_alive)(const TurnProcess&)) {
  std::uint64_t latest = 0;
  for (TurnProcess& process : run.processes) {
    std::uint64_t until = process.until_ns.load(kRelaxed);
    if (until > now + kTurnPromiseNs && !is_alive(process)) {
      process.until_ns.compare_exchange_strong(until, now);
      continue;
    }
    latest = std::max(latest, until);
  }
  return latest;
}

void raise(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t before = word.load(kRelaxed);
  while (before < value && !word.compare_exchange_weak(before, value)) {
  }
}

// Charges the holder for the time since it was last charged, whether or not the device was busy,
// because no other run could use it.
void pay(TurnRun& run, std::uint64_t now) {
  const std::uint64_t from = run.held_ns.exchange(now, kRelaxed);
  if (from == 0 || from >= now) return;
  const std::uint64_t held = std::min(now - from, kTurnForgottenNs);
  run.paid_ns.fetch_add(held * wire::kGpuWholeShare / std::max(run.share.load(kRelaxed), 1U),
                        kRelaxed);
}

}  // namespace

void set_share(TurnRun& run, const wire::GpuShare& share) {
  const std::uint32_t before =
      run.share.exchange(std::clamp(share.thousandths, 1U, wire::kGpuWholeShare));
  run.priority.store(static_cast<std::uint32_t>(share.priority));
  run.borrow.store(share.borrow ? 1 : 0);
  if (before == run.share.load()) return;
  // Credit or debt from another share does not carry over.
  run.credit_ns.store(static_cast<std::int64_t>(turn_part(run)));
}

Turn take_turn(TurnDevice& device, std::size_t row, std::uint64_t now,
               bool (*is_alive)(const TurnProcess&)) {
  TurnRun& mine = device.runs[row];
  fill(mine, now);
  const std::uint64_t word = device.holder.load(std::memory_order_acquire);
  const std::size_t holder = turn_holder(word);
  if (!waits(mine, now)) {
    mine.since_ns.store(now, kRelaxed);
    // A run gets no credit for time in which it wanted nothing.
    if (now > mine.seen_ns.load(kRelaxed) + kTurnFreshNs) raise(mine.paid_ns, device.paid_ns);
  }
  mine.seen_ns.store(now, kRelaxed);
  if (holder == row) return {true, now};
  mine.waiting_ns.store(now, kRelaxed);

  std::uint64_t free_since = is_absurd(time_in(word), now) ? 0 : time_in(word);
  if (holder != kNoTurnRow) {
    TurnRun& other = device.runs[holder];
    const bool higher = other.priority.load(kRelaxed) > mine.priority.load(kRelaxed);
    free_since = busy_until(other, now, is_alive) + (higher ? kTurnIdleHighNs : kTurnIdleNs);
    if (now < free_since) return {false, std::min(free_since, now + kLookAgainNs)};
  }
  const std::size_t place = place_of(device, row, now);
  if (place == kNoTurnRow) {
    const std::int64_t wanting =
        static_cast<std::int64_t>(turn_part(mine) / 2) - mine.credit_ns.load(kRelaxed);
    const std::uint64_t share = std::max(mine.share.load(kRelaxed), 1U);
    const std::uint64_t filling =
        wanting <= 0 ? 0 : static_cast<std::uint64_t>(wanting) * wire::kGpuWholeShare / share;
    return {false, now + std::clamp<std::uint64_t>(filling, kLookAgainNs / 2, kTurnFreshNs / 2)};
  }
  if (const std::uint64_t my_time = free_since + place * kTurnHandOverNs; now < my_time) {
    return {false, my_time};
  }
  const std::uint64_t part = turn_part(mine);
  const auto credit =
      static_cast<std::uint64_t>(std::max<std::int64_t>(mine.credit_ns.load(kRelaxed), 0));
  const std::uint64_t length = std::clamp(credit, std::min(part, kLookAgainNs), part);
  std::uint64_t expected = word;
  if (!device.holder.compare_exchange_strong(expected, holder_word(now + length, row))) {
    return {turn_holder(expected) == row, now};
  }
  mine.waiting_ns.store(0, kRelaxed);
  mine.held_ns.store(now, kRelaxed);
  raise(device.paid_ns, mine.paid_ns.load(kRelaxed));
  return {true, now};
}

TurnDecision may_go_on(TurnDevice& device, std::size_t row, std::uint64_t now,
                       std::uint64_t ahead_ns) {
  TurnRun& mine = device.runs[row];
  fill(mine, now);
  mine.seen_ns.store(now, kRelaxed);
  std::uint64_t word = device.holder.load(std::memory_order_acquire);
  if (turn_holder(word) != row) return TurnDecision::kLost;
  mine.waiting_ns.store(0, kRelaxed);
  pay(mine, now);
  bool wanted = false;          // by a run with credit
  bool wanted_equally = false;  // by a run that is next when this turn ends
  for (const TurnRun& other : device.runs) {
    if (&other == &mine || !waits(other, now) || !has_credit(other, now)) continue;
    wanted = true;
    const std::uint32_t priority = other.priority.load(kRelaxed);
    const std::uint32_t own = mine.priority.load(kRelaxed);
    if (priority > own) {
      if (!starves(mine, now)) return TurnDecision::kStop;
      mine.since_ns.store(now, kRelaxed);  // once
    }
    if (priority == own || starves(other, now)) wanted_equally = true;
  }
  if (!wanted) raise(device.paid_ns, mine.paid_ns.load(kRelaxed));  // later runs start there
  const bool credit = mine.credit_ns.load(kRelaxed) > static_cast<std::int64_t>(ahead_ns);
  if (!credit && (wanted || mine.borrow.load(kRelaxed) == 0)) return TurnDecision::kStop;
  if (now + ahead_ns < time_in(word)) return TurnDecision::kGo;
  if (wanted_equally) return TurnDecision::kStop;
  // A little longer: another run may become entitled to it meanwhile.
  const std::uint64_t more = std::max(turn_part(mine) / 4, kTurnShortestNs);
  device.holder.compare_exchange_strong(word, holder_word(now + ahead_ns + more, row));
  return TurnDecision::kGo;
}

bool end_turn(TurnDevice& device, std::size_t row, std::uint64_t now) {
  std::uint64_t word = device.holder.load(std::memory_order_acquire);
  while (turn_holder(word) == row) {
    if (!device.holder.compare_exchange_strong(word, holder_word(now, kNoRow))) continue;
    pay(device.runs[row], now);
    device.ended.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

std::uint64_t charge_turn(TurnDevice& device, std::size_t row, std::uint64_t from,
                          std::uint64_t to) {
  TurnRun& run = device.runs[row];
  std::uint64_t charged = run.charged_ns.load(kRelaxed);
  if (is_absurd(charged, to) && run.charged_ns.compare_exchange_strong(charged, 0)) charged = 0;
  do {
    from = std::max(from, charged);
    if (to <= from) return 0;
  } while (!run.charged_ns.compare_exchange_weak(charged, to));
  const std::uint64_t amount = to - from;
  run.credit_ns.fetch_sub(static_cast<std::int64_t>(amount), kRelaxed);
  run.busy_ns.fetch_add(amount, kRelaxed);
  return amount;
}

}  // namespace assay::gpu
