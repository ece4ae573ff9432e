#include "share/region.h"

#include <algorithm>

namespace assay::share {
namespace {

using wire::GpuQuantity;

constexpr std::uint32_t kBorrowYes = 1;
constexpr std::uint32_t kBorrowNo = 2;

void set(const Limits& given, wire::GpuLimits& limits) {
  if (given.bytes) limits.bytes.store(*given.bytes);
  if (given.thousandths) limits.share.store(*given.thousandths);
  if (given.priority) limits.priority.store(static_cast<std::uint32_t>(*given.priority));
  if (given.borrow) limits.borrow.store(*given.borrow ? kBorrowYes : kBorrowNo);
}

Limits read(const wire::GpuLimits& limits) {
  Limits found;
  if (const auto bytes = limits.bytes.load(); bytes != 0) found.bytes = bytes;
  if (const auto share = limits.share.load(); share != 0) found.thousandths = share;
  if (const auto priority = limits.priority.load(); priority != 0) {
    found.priority = static_cast<wire::GpuPriority>(priority);
  }
  if (const auto borrow = limits.borrow.load(); borrow != 0) found.borrow = borrow == kBorrowYes;
  return found;
}

void lift(wire::GpuLimits& limits) {
  limits.bytes.store(0);
  limits.share.store(0);
  limits.priority.store(0);
  limits.borrow.store(0);
}

std::size_t free_rows(const wire::GpuRegion& region) {
  return static_cast<std::size_t>(
      std::count_if(std::begin(region.devices), std::end(region.devices),
                    [](const wire::GpuDevice& device) { return device.key.load() == 0; }));
}

bool has_row(const wire::GpuRegion& region, const wire::GpuUuid& uuid) {
  const std::uint64_t key = wire::device_key(uuid[0], uuid[1]);
  return std::any_of(std::begin(region.devices), std::end(region.devices),
                     [&](const wire::GpuDevice& device) { return device.key.load() == key; });
}

// Counters are read one by one while threads change them: a difference may come out negative.
std::uint64_t less(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

DeviceState device_state(const wire::GpuRegion& region, std::size_t line,
                         const std::vector<bool>& living) {
  const wire::GpuDevice& device = region.devices[line];
  DeviceState state;
  state.uuid = {device.uuid[0].load(), device.uuid[1].load()};
  state.total = device.total.load();
  state.limit = wire::byte_limit(region, device);
  state.share = wire::share_of(region, device);
  state.busy_ns = device.busy_ns.load();
  state.waited_ns = device.waited_ns.load();
  // Sums over living processes instead of using the device's total, which includes exited ones
  // until the next allocation.
  for (std::size_t i = 0; i < std::min(living.size(), wire::kGpuSlots); ++i) {
    if (living[i]) state.used += region.slots[i].used[line].load();
  }
  return state;
}

}  // namespace

bool apply(const LimitPlan& plan, wire::GpuRegion& region) {
  const auto wanted = static_cast<std::size_t>(
      std::count_if(plan.devices.begin(), plan.devices.end(),
                    [&](const auto& device) { return !has_row(region, device.uuid); }));
  if (wanted > free_rows(region)) return false;
  for (const LimitPlan::Device& device : plan.devices) {
    const std::size_t line = wire::claim_device(region, device.uuid[0], device.uuid[1]);
    if (line == wire::kGpuDevices) return false;  // a process took the last row meanwhile
    if (device.total) {
      region.devices[line].total.store(static_cast<std::uint64_t>(device.total->count()));
    }
    set(device.limits, region.devices[line].limits);
  }
  set(plan.all, region.header.limits);
  region.header.generation.fetch_add(1);
  return true;
}

void clear_limits(wire::GpuRegion& region) {
  lift(region.header.limits);
  for (wire::GpuDevice& device : region.devices) lift(device.limits);
  region.header.generation.fetch_add(1);
}

RunState state_of(const wire::GpuRegion& region, const std::vector<bool>& living) {
  RunState state;
  state.totals = wire::sum_of(region);
  const auto calls = [&](GpuQuantity quantity) { return state.totals[quantity].calls; };
  const std::uint64_t asked = calls(GpuQuantity::kKernel) + calls(GpuQuantity::kKernelEx) +
                              calls(GpuQuantity::kCooperative);
  const std::uint64_t ran = less(asked, calls(GpuQuantity::kCaptured));
  state.launches = ran + calls(GpuQuantity::kGraph);
  state.kernels = ran + calls(GpuQuantity::kGraphKernel);
  state.refused = calls(GpuQuantity::kRefused);
  state.matmuls = calls(GpuQuantity::kMatmul);
  state.matmul_flops = static_cast<double>(state.totals[GpuQuantity::kMatmul].amount) *
                           static_cast<double>(wire::kGpuFlopUnit) +
                       static_cast<double>(state.totals.flops_left[0]);
  for (const GpuQuantity copy :
       {GpuQuantity::kCopyToDevice, GpuQuantity::kCopyToHost, GpuQuantity::kCopyOnDevice,
        GpuQuantity::kCopyToPeer, GpuQuantity::kCopyUnified, GpuQuantity::kCopyArray}) {
    state.copied_bytes += state.totals[copy].amount;
  }
  for (const wire::GpuCollective& row : region.collectives) {
    if (row.key.load() == 0) continue;
    state.collectives += row.calls.load();
    state.collective_bytes += row.bytes.load();
  }
  state.processes = static_cast<std::size_t>(std::count(living.begin(), living.end(), true));
  state.all = read(region.header.limits);
  for (std::size_t line = 0; line < wire::kGpuDevices; ++line) {
    if (region.devices[line].key.load() == 0) continue;
    state.devices.push_back(device_state(region, line, living));
  }
  return state;
}

}  // namespace assay::share
