#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/clock.h"
#include "base/number.h"
#include "base/process/proc.h"
#include "hash/blake3.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kForeignIdle_ns = 3'600'000'000'000;
constexpr std::string_view kStepPrefix = "step-";
constexpr std::array<std::string_view, 3> kKinds = {"tmp", "was", "gone"};

std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  const auto value = base::parse_number<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// Removes and returns the text before the first `separator`.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view before = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return before;
}

// A pid is unique only within one boot and one process namespace of a machine.
const std::string& this_machine() {
  static const std::string machine = [] {
    std::array<char, 128> boot{};
    std::array<char, 128> space{};
    std::string text(base::read_proc_file("/proc/sys/kernel/random/boot_id", boot));
    const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size());
    if (length > 0) text.append(space.data(), static_cast<std::size_t>(length));
    return hash::blake3(std::as_bytes(std::span(text))).hex().substr(0, 8);
  }();
  return machine;
}

// Latest modification of the folder and its entries.
std::int64_t last_change_ns(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return 0;
  std::int64_t last = base::nanoseconds(status.st_mtim);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (::stat(at->path().c_str(), &status) == 0) {
      last = std::max(last, base::nanoseconds(status.st_mtim));
    }
  }
  return last;
}

}  // namespace

std::string step_name(std::int64_t step) {
  return fmt::format("{}{}", kStepPrefix, step);
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  return whole_number(name.substr(kStepPrefix.size()));
}

std::string hidden_name(std::int64_t step, HiddenKind kind) {
  static std::atomic<std::uint64_t> used = 0;
  const pid_t pid = ::getpid();
  const auto stat = base::process_stat(pid);
  return fmt::format(".{}.{}-{}-{}-{}-{}", step_name(step), kKinds[static_cast<std::size_t>(kind)],
                     this_machine(), pid, stat ? stat->start_ticks : 0, used.fetch_add(1));
}

std::optional<HiddenName> parse_hidden(std::string_view name) {
  if (!name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  const auto step = step_of(take(name, '.'));
  const auto kind = std::find(kKinds.begin(), kKinds.end(), take(name, '-'));
  const std::string machine(take(name, '-'));
  const auto pid = whole_number(take(name, '-'));
  const auto start = whole_number(take(name, '-'));
  if (!step || kind == kKinds.end() || machine.empty() || !pid || !start || !whole_number(name)) {
    return std::nullopt;
  }
  return HiddenName{*step, static_cast<HiddenKind>(kind - kKinds.begin()), machine, *pid, *start};
}

base::Result<std::vector<std::int64_t>> steps_in(const fs::path& root) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const auto step = step_of(at->path().filename().string());
    if (step && at->is_directory(ignored)) steps.push_back(*step);
  }
  if (error.value() == ENOENT || error.value() == ENOTDIR) {
    return base::fail(base::usage_error(root.string(), "there is no such folder"));
  }
  if (error) return base::fail(file_error(root.string(), "cannot list", error.value()));
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool owner_has_exited(const HiddenName& name, const fs::path& folder) {
  if (name.machine != this_machine()) {
    return base::system_clock().wall_ns() - last_change_ns(folder) > kForeignIdle_ns;
  }
  const auto stat = base::process_stat(static_cast<pid_t>(name.pid));
  return !stat || stat->start_ticks != name.start_ticks || stat->has_ended();
}

}  // namespace assay::checkpoint
