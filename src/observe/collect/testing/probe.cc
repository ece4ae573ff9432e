#include "observe/collect/testing/probe.h"

#include <linux/audit.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace assay::collect::testing {
namespace {

bool is_stopped(const __ptrace_syscall_info& info) {
  const auto calls = calls_to_stop(info.arch);
  return std::any_of(calls.begin(), calls.end(), [&](const CallToStop& stopped) {
    return stopped.number == static_cast<int>(info.entry.nr);
  });
}

// Continues to the next stop at a system call; false when the child has exited.
bool next_stop(pid_t child, __ptrace_syscall_info& info) {
  if (::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0) return false;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return false;
  return ::ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), child, sizeof info,
                  &info) > 0;
}

std::string name_of(Change change) {
  switch (change) {
    case Change::kTruncate:
      return "cut";
    case Change::kContent:
      return "content";
    case Change::kContentReadable:
      return "content-readable";
    case Change::kName:
      return "name";
    case Change::kTimes:
      return "times";
  }
  return "unknown";
}

}  // namespace

ProbeResult probe(const std::function<void()>& act, const std::function<void()>& prepare) {
  ProbeResult seen;
  const pid_t child = ::fork();
  if (child == 0) {
    prepare();
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    act();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  __ptrace_syscall_info info{};
  while (next_stop(child, info)) {
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !is_stopped(info)) continue;
    SystemCall call{.arch = info.arch, .number = static_cast<int>(info.entry.nr)};
    std::copy_n(info.entry.args, call.arguments.size(), call.arguments.begin());
    seen.effect = effect_of(child, call);
    // exec stops once more inside the call.
    while (next_stop(child, info) && info.op != PTRACE_SYSCALL_INFO_EXIT) {
    }
    seen.result = info.exit.rval;
    break;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return seen;
}

std::vector<std::string> lines_of(const std::optional<CallEffect>& effect,
                                  const std::filesystem::path& root) {
  std::vector<std::string> lines;
  if (!effect) return lines;
  const auto shorten = [&](std::string path) {
    if (path.starts_with(root.string())) path.replace(0, root.string().size(), "T");
    std::replace(path.begin(), path.end(), '\0', '|');
    return path;
  };
  for (const auto& coming : effect->changes) {
    lines.push_back("change " + name_of(coming.change) + " " + shorten(coming.path));
  }
  for (const auto& event : effect->events) {
    std::string line = std::string(wire::name_of(event.op)) + " " + shorten(event.path);
    if (!event.other.empty()) line += " " + shorten(event.other);
    if ((event.flags & wire::flag::kWritable) != 0) line += " writable";
    if ((event.flags & wire::flag::kExchange) != 0) line += " exchange";
    if ((event.flags & wire::flag::kUnnamed) != 0) line += " unnamed";
    if ((event.flags & wire::flag::kNoStamp) != 0) line += " no-stamp";
    if ((event.flags & wire::flag::kSize) != 0) line += " size";
    lines.push_back(line);
  }
  if (!effect->will_succeed) lines.emplace_back("fails");
  return lines;
}

ProbeFolder::ProbeFolder() : root_(std::filesystem::canonical(directory_.path())) {}

std::string ProbeFolder::path(const std::string& name) const {
  return name.empty() ? root_.string() : (root_ / name).string();
}

std::string ProbeFolder::file(const std::string& name, const std::string& content) const {
  std::ofstream(path(name)) << content;
  return path(name);
}

std::string ProbeFolder::directory(const std::string& name) const {
  std::filesystem::create_directories(path(name));
  return path(name);
}

std::string ProbeFolder::link(const std::string& name, const std::string& target) const {
  std::filesystem::create_symlink(target, path(name));
  return path(name);
}

std::vector<std::string> ProbeFolder::effect_lines(const std::function<void()>& act,
                                                   const std::function<void()>& prepare) {
  seen = probe(act, prepare);
  return lines_of(seen.effect, root_);
}

}  // namespace assay::collect::testing
