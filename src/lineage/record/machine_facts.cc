// machine_facts() of context.h. Reading /proc and /sys takes a fraction of a millisecond and is
// done always; only what the GPU driver says is remembered.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "base/version.h"
#include "lineage/record/context.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kMostCache{4 << 20};
// What the driver tells, and only it.
constexpr std::array kFromDriver = {"gpu_source", "gpus", "gpu_links", "drivers", "notes"};

std::string file_text(const fs::path& path) {
  return base::read_file(path, base::Bytes(65536)).value_or(std::string());
}

// Device files, because a container sees some of the GPUs of a machine that others share.
std::string gpu_devices(const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root / "dev", error), end; !error && at != end;
       at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.starts_with("nvidia")) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ","));
}

std::string cache_key(const fs::path& root, const std::string& hostname) {
  return fmt::format("{}|{}|{}|{}|{}", base::version().release,
                     file_text(root / "proc/sys/kernel/random/boot_id"), hostname,
                     file_text(root / "proc/driver/nvidia/version"), gpu_devices(root));
}

base::Json read_cache(const fs::path& cache, const std::string& key) {
  const auto text = base::read_file(cache, kMostCache);
  if (!text) return {};
  base::Json document = base::Json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("key") || document["key"] != key) return {};
  return document.contains("machine") ? document["machine"] : base::Json();
}

}  // namespace

base::Json machine_facts(const fs::path& store_directory, const machine::DiscoverOptions& options) {
  const fs::path cache = store_directory / "machine.json";
  const machine::Machine seen = machine::discover({options.root, ""});
  base::Json now = machine::to_json(seen);
  const std::string key = cache_key(options.root, seen.hostname);
  const base::Json before = read_cache(cache, key);
  const bool known =
      before.is_object() && std::all_of(kFromDriver.begin(), kFromDriver.end(),
                                        [&](const char* part) { return before.contains(part); });
  if (known) {
    for (const char* part : kFromDriver) now[part] = before[part];
    return now;
  }
  now = machine::to_json(machine::discover(options));
  const std::string text = base::json_text({{"key", key}, {"machine", now}});
  std::ignore = base::replace_file(cache, text);  // a cache: next time then
  return now;
}

}  // namespace assay::lineage
