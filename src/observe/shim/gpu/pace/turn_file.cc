// The file of turns and the runs' rows in it.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "observe/shim/gpu/pace/turn_file.h"

namespace assay::gpu {

bool make_gpu_turns(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  if (status.st_size < static_cast<off_t>(sizeof(GpuTurns))) {
    if (const int error = ::posix_fallocate(file, 0, sizeof(GpuTurns)); error != 0) {
      errno = error;
      return false;
    }
  }
  std::uint64_t header[2] = {};
  if (::pread(file, header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return false;
  if (header[0] == 0 && header[1] == 0) {  // any process writes the same
    header[0] = kTurnsMagic;
    header[1] = kTurnsVersion;
    return ::pwrite(file, header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
  }
  if (header[0] == kTurnsMagic && header[1] == kTurnsVersion) return true;
  errno = EPROTO;
  return false;
}

TurnDevice* turn_device(GpuTurns& turns, std::uint64_t key) {
  for (TurnDevice& device : turns.devices) {
    std::uint64_t found = device.key.load(std::memory_order_relaxed);
    if (found == 0 && device.key.compare_exchange_strong(found, key)) found = key;
    if (found == key) return &device;
  }
  return nullptr;
}

namespace {

// TurnRun::run of a row that is being emptied: neither a run's number nor 0, which means free.
constexpr std::uint64_t kRowBeingEmptied = ~std::uint64_t{0};

void make_empty(const TurnDevice& device, TurnRun& row, std::uint64_t now) {
  row.waiting_ns.store(0);
  row.filled_ns.store(now);
  row.credit_ns.store(0);
  row.busy_ns.store(0);
  row.charged_ns.store(0);
  row.held_ns.store(0);
  row.paid_ns.store(device.paid_ns.load());
  for (TurnProcess& process : row.processes) {
    process.process.store(0);
    process.until_ns.store(0);
  }
}

std::size_t find_or_claim(TurnDevice& device, std::uint64_t run, std::uint64_t now) {
  for (std::size_t row = 0; row < kTurnRuns; ++row) {
    if (device.runs[row].run.load() == run) return row;
  }
  for (std::size_t row = 0; row < kTurnRuns; ++row) {
    TurnRun& found = device.runs[row];
    std::uint64_t owner = found.run.load();
    const std::uint64_t seen = found.seen_ns.load(std::memory_order_relaxed);
    const bool forgotten = now > seen + kTurnForgottenNs || is_absurd(seen, now);
    if (owner != 0 && (!forgotten || turn_holder(device.holder.load()) == row)) continue;
    found.seen_ns.store(now);
    // Marked while it is emptied, so that no process takes a place in it meanwhile.
    if (!found.run.compare_exchange_strong(owner, kRowBeingEmptied)) continue;
    make_empty(device, found, now);
    found.run.store(run);
    return row;
  }
  return kNoTurnRow;
}

}  // namespace

std::size_t join_turns(TurnDevice& device, std::uint64_t run, std::uint64_t now) {
  constexpr int kTimeout = 10'000;  // number of sched_yield calls
  std::uint32_t expected = 0;
  for (int i = 0; i < kTimeout && !device.joining.compare_exchange_strong(expected, 1); ++i) {
    expected = 0;
    ::sched_yield();
  }
  const std::size_t row = find_or_claim(device, run, now);
  device.joining.store(0);
  return row;
}

TurnProcess& join_run(TurnRun& run, std::uint64_t process, std::uint64_t namespace_id,
                      bool (*is_alive)(const TurnProcess&)) {
  for (TurnProcess& place : run.processes) {
    if (place.process.load() == process && place.namespace_id.load() == namespace_id) return place;
  }
  for (TurnProcess& place : run.processes) {
    std::uint64_t owner = place.process.load();
    if (owner != 0 && is_alive(place)) continue;
    if (!place.process.compare_exchange_strong(owner, process)) continue;
    place.namespace_id.store(namespace_id);
    place.until_ns.store(0);
    return place;
  }
  return run.processes[kTurnProcesses - 1];
}

}  // namespace assay::gpu
