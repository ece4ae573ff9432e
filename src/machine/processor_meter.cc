// See meter.h.
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "machine/file_tree.h"
#include "machine/meter.h"

namespace assay::machine {
namespace {

constexpr const char* kZones = "/sys/class/powercap/";

std::optional<std::uint64_t> whole_number(const FileTree& tree, const std::string& path) {
  const auto text = tree.read(path);
  std::uint64_t value = 0;
  if (!text || text->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// "intel-rapl:0", AMD's too; "intel-rapl:0:1" is a part of it, and "intel-rapl-mmio:0" the same
// package by another way.
bool is_whole_zone(const std::string& name) {
  return name.starts_with("intel-rapl:") && name.find(':') == name.rfind(':');
}

// Left open: it is read ten times a second, and opening is what a traced program is stopped for.
std::optional<std::uint64_t> counter_now(const base::UniqueFd& counter) {
  char text[32];
  const ssize_t size = ::pread(counter.get(), text, sizeof text, 0);
  std::uint64_t value = 0;
  if (size <= 0 || std::from_chars(text, text + size, value).ec != std::errc{}) return std::nullopt;
  return value;
}

struct Zone {
  base::UniqueFd counter;
  std::uint64_t wraps_at = 0;
  std::uint64_t last = 0;
};

class ProcessorMeter : public Meter {
 public:
  explicit ProcessorMeter(std::vector<Zone> zones) : zones_(std::move(zones)) {}

  Reading read() override {
    for (Zone& zone : zones_) {
      const auto now = counter_now(zone.counter);
      if (!now) return {};
      const std::uint64_t used =
          *now >= zone.last ? *now - zone.last : zone.wraps_at - zone.last + *now;
      microjoules_ += used;
      zone.last = *now;
    }
    return {.joules = static_cast<double>(microjoules_) / 1e6};
  }

 private:
  std::vector<Zone> zones_;
  std::uint64_t microjoules_ = 0;
};

}  // namespace

std::unique_ptr<Meter> processor_meter(const std::string& root) {
  const FileTree tree(root);
  std::vector<Zone> zones;
  for (const std::string& name : tree.list(kZones)) {
    const std::string folder = kZones + name;
    // "psys" would count the packages once more.
    if (!is_whole_zone(name) || !tree.read(folder + "/name").value_or("").starts_with("package")) {
      continue;
    }
    base::UniqueFd counter(
        ::open((root + folder + "/energy_uj").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!counter.valid()) return nullptr;
    const auto now = counter_now(counter);
    const auto range = whole_number(tree, folder + "/max_energy_range_uj");
    if (!now || !range || *now > *range) return nullptr;
    zones.push_back({std::move(counter), *range, *now});
  }
  if (zones.empty()) return nullptr;
  return std::make_unique<ProcessorMeter>(std::move(zones));
}

}  // namespace assay::machine
