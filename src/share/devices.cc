#include "share/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/number.h"
#include "base/text.h"

namespace assay::share {
namespace {

using machine::GpuName;

// The devices that CUDA can use: of a card divided into MIG slices, the slices.
std::vector<GpuName> usable(const std::vector<GpuName>& gpus) {
  std::vector<GpuName> out;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(out),
               [](const GpuName& gpu) { return !gpu.sliced; });
  return out;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view start) {
  if (text.size() < start.size()) return false;
  return std::equal(start.begin(), start.end(), text.begin(), [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

// "GPU-" alone is not a prefix of a UUID.
bool may_be_uuid(std::string_view text) {
  return text.size() > 4 &&
         (starts_with_ignoring_case(text, "GPU-") || starts_with_ignoring_case(text, "MIG-"));
}

std::vector<const GpuName*> by_uuid(const std::vector<GpuName>& gpus, std::string_view text) {
  std::vector<const GpuName*> found;
  if (!may_be_uuid(text)) return found;
  for (const GpuName& gpu : gpus) {
    if (starts_with_ignoring_case(gpu.uuid, text) || (!gpu.old_id.empty() && gpu.old_id == text)) {
      found.push_back(&gpu);
    }
  }
  return found;
}

}  // namespace

std::vector<GpuName> visible_gpus(const std::vector<GpuName>& gpus,
                                  const CudaEnvironment& environment) {
  std::vector<GpuName> all = usable(gpus);
  if (!environment.visible_devices) return all;
  std::vector<GpuName> visible;
  std::string_view rest = *environment.visible_devices;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view entry = base::trim(rest.substr(0, comma));
    if (more) rest.remove_prefix(comma + 1);
    const GpuName* named = nullptr;
    if (const auto index = base::parse_number<std::size_t>(entry)) {
      if (*index < all.size()) named = &all[*index];
    } else if (const auto found = by_uuid(all, entry); found.size() == 1) {
      named = found.front();
    }
    if (named == nullptr) break;
    const auto same = [&](const GpuName& gpu) {
      return gpu.index == named->index && gpu.slice == named->slice;
    };
    if (std::any_of(visible.begin(), visible.end(), same)) return {};
    visible.push_back(*named);
  }
  return visible;
}

bool order_is_known(const std::vector<GpuName>& gpus, const CudaEnvironment& environment) {
  if (environment.device_order == "PCI_BUS_ID") return true;
  const std::vector<GpuName> all = usable(gpus);
  return std::all_of(all.begin(), all.end(), [&](const GpuName& gpu) {
    return gpu.name == all.front().name && gpu.memory == all.front().memory;
  });
}

base::Result<GpuName> gpu_named(const std::vector<GpuName>& visible, std::string_view text) {
  const std::string there = visible.empty()       ? "the command will see none"
                            : visible.size() == 1 ? "the command will see one, 0"
                                                  : fmt::format("the command will see {}, 0 to {}",
                                                                visible.size(), visible.size() - 1);
  if (const auto index = base::parse_number<std::size_t>(text)) {
    if (*index < visible.size()) return visible[*index];
    return base::fail(base::usage_error({}, fmt::format("there is no GPU {}", text), there));
  }
  const auto found = by_uuid(visible, text);
  if (found.size() == 1) return *found.front();
  if (found.size() > 1) {
    return base::fail(base::usage_error(
        {}, fmt::format("'{}' is a prefix of {} UUIDs", text, found.size()), "give more of it"));
  }
  return base::fail(
      base::usage_error({}, fmt::format("there is no GPU '{}'", text),
                        there + "; a GPU is an index, a UUID (GPU-…, MIG-…) or a prefix of one"));
}

}  // namespace assay::share
