// Reading /proc and /sys takes a fraction of a millisecond and is always done; only what the GPU
// driver reports is cached.
#include "lineage/record/context.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "base/host_name.h"
#include "base/version.h"
#include "lineage/redact/command.h"

namespace assay::lineage {
namespace {

std::string user_name() {
  std::vector<char> buffer(16384);
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(::geteuid());  // containers often have no user name
}

}  // namespace

GatheredContext gather_context(const ContextOptions& options) {
  GatheredContext gathered;
  GitState state = git_state(options.directory, options.environment, options.git);
  gathered.context.git = std::move(state.git);
  if (!state.problem.empty()) gathered.problems.push_back("git: " + state.problem);
  gathered.context.user = user_name();
  gathered.context.host = base::host_name();
  gathered.context.environment = redact_environment(options.environment);
  return gathered;
}

ContextTask::ContextTask(ContextOptions options)
    : future_(std::async(std::launch::async,
                         [options = std::move(options)] { return gather_context(options); })) {}

store::Usage usage_of(const struct rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  constexpr std::int64_t kBlock = 512;  // the unit of getrusage, whatever the device's
  return {.user_s = seconds(usage.ru_utime),
          .system_s = seconds(usage.ru_stime),
          .max_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024,
          .read_bytes = std::int64_t{usage.ru_inblock} * kBlock,
          .written_bytes = std::int64_t{usage.ru_oublock} * kBlock};
}

namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kMostCache{4 << 20};
// Keys that come from the driver alone.
constexpr std::array kFromDriver = {"gpu_source", "gpus", "gpu_links", "drivers", "notes"};

std::string file_text(const fs::path& path) {
  return base::read_file(path, base::Bytes(65536)).value_or(std::string());
}

// Device files, because a container may see only some of a machine's GPUs.
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
  std::ignore = base::replace_file(cache, text);  // only a cache
  return now;
}

}  // namespace assay::lineage
