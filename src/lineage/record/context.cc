#include "lineage/record/context.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "lineage/redact/environment.h"

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
  return std::to_string(::geteuid());  // containers often have no name for it
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Gathered gather_context(const ContextOptions& options) {
  Gathered gathered;
  GitState state = git_state(options.directory, options.environment, options.git);
  gathered.context.git = std::move(state.git);
  if (!state.problem.empty()) gathered.problems.push_back("git: " + state.problem);
  gathered.context.user = user_name();
  gathered.context.host = host_name();
  gathered.context.environment = redacted_environment(options.environment);
  return gathered;
}

ContextTask::ContextTask(ContextOptions options)
    : future_(std::async(std::launch::async,
                         [options = std::move(options)] { return gather_context(options); })) {}

store::Usage usage_of(const struct rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  constexpr std::int64_t kBlock = 512;  // getrusage counts in these, whatever the device has
  return {.user_s = seconds(usage.ru_utime),
          .system_s = seconds(usage.ru_stime),
          .max_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024,
          .read_bytes = std::int64_t{usage.ru_inblock} * kBlock,
          .written_bytes = std::int64_t{usage.ru_oublock} * kBlock};
}

}  // namespace assay::lineage
