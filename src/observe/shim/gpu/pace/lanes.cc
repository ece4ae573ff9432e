#include "observe/shim/gpu/pace/lanes.h"

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/pace/turns.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

constexpr std::size_t kLanes = 32;
constinit Lane lanes[kLanes];
constinit SpinLock finding;

std::uint32_t index_of_current_device() {
  int ordinal = -1;
  std::uint64_t uuid[2] = {};
  if (region() == nullptr || helpers.current_device == nullptr || helpers.device_uuid == nullptr ||
      helpers.current_device(&ordinal) != 0 ||
      helpers.device_uuid(reinterpret_cast<unsigned char*>(uuid), ordinal) != 0) {
    return wire::kGpuDevices;
  }
  return static_cast<std::uint32_t>(wire::claim_device(*region(), uuid[0], uuid[1]));
}

bool has_all_event_functions() {
  return helpers.event_create != nullptr && helpers.event_record != nullptr &&
         helpers.event_record_ptsz != nullptr && helpers.event_query != nullptr &&
         helpers.event_elapsed != nullptr;
}

// For a new context; replaces the least recently used one if necessary.
void begin(Lane& lane, std::uint64_t context) {
  lane.generation = 0;
  lane.limited = false;
  lane.has_events = has_all_event_functions() && helpers.context_id != nullptr;
  lane.failures = 0;
  lane.device_index = index_of_current_device();
  lane.device = nullptr;
  lane.place = nullptr;
  for (Pair& pair : lane.pairs) pair = {};
  lane.first = lane.count = 0;
  lane.passed = -1;
  lane.overtaken_ns = lane.marked_ns = lane.unmarked_ns = lane.busy_from = lane.until = 0;
  lane.unmarked_known = true;
  lane.unmarked_parts = lane.pacing_points = 0;
  lane.correction = {};
  lane.context.store(context, std::memory_order_relaxed);
  if (!lane.has_events) log_line("no CUDA events: shares are enforced by estimates alone");
}

}  // namespace

Lane* take_lane() {
  void* context = nullptr;
  if (helpers.current_context == nullptr || helpers.current_context(&context) != 0 ||
      context == nullptr) {
    return nullptr;
  }
  unsigned long long number = 0;
  if (helpers.context_id == nullptr || helpers.context_id(context, &number) != 0) {
    number = reinterpret_cast<std::uintptr_t>(context);
  }
  const std::uint64_t key = wire::gpu_mix(number);
  if (!finding.try_lock_bounded()) return nullptr;
  Lane* found = nullptr;
  for (Lane& lane : lanes) {
    const std::uint64_t owner = lane.context.load(std::memory_order_relaxed);
    if (owner == key) {
      found = &lane;
      break;
    }
    if (lane.users.load() != 0) continue;
    if (found == nullptr || lane.used_ns < found->used_ns) found = &lane;
  }
  if (found != nullptr) {
    if (found->context.load(std::memory_order_relaxed) != key) begin(*found, key);
    found->users.fetch_add(1);
    found->used_ns = now_ns();
  }
  finding.unlock();
  return found;
}

void give_back(Lane& lane) {
  lane.users.fetch_sub(1);
}

void forget_lanes() {
  finding.reset();
  for (Lane& lane : lanes) {
    lane.lock.reset();
    lane.users.store(0);
    lane.context.store(0);
    lane.used_ns = 0;
  }
}

bool is_limited(Lane& lane, std::uint64_t now) {
  wire::GpuRegion& counted = *region();
  const std::uint64_t generation = counted.header.generation.load(std::memory_order_acquire) + 1;
  const bool same_row =
      lane.device == nullptr ||
      lane.device->runs[lane.row].run.load(std::memory_order_relaxed) == counted.header.run;
  if (lane.generation == generation && same_row) return lane.limited;
  lane.generation = generation;
  lane.limited = false;
  if (lane.device_index >= wire::kGpuDevices) return false;
  const wire::GpuDevice& device = counted.devices[lane.device_index];
  const wire::GpuShare share = wire::share_of(counted, device);
  GpuTurns* file = share.limited() ? turns() : nullptr;
  TurnDevice* shared = file == nullptr ? nullptr : turn_device(*file, device.key);
  const std::size_t row =
      shared == nullptr ? kNoTurnRow : join_turns(*shared, counted.header.run, now);
  if (row == kNoTurnRow) {
    if (share.limited()) log_line("no free row in the file of turns: launches are not paced");
    if (lane.device != nullptr && end_turn(*lane.device, lane.row, now)) wake_waiters(*lane.device);
    lane.device = nullptr;
    lane.busy_from = lane.unmarked_ns = 0;  // work of the former context is no longer charged
    return false;
  }
  lane.device = shared;
  lane.row = row;
  lane.place = &own_place(shared->runs[row]);
  set_share(shared->runs[row], share);
  lane.limited = true;
  return true;
}

}  // namespace assay::gpu
