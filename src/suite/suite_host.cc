#include "suite/suite_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "machine/discover.h"
#include "observe/collect/tracers.h"

namespace assay::suite {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kOneGib(std::int64_t{1} << 30);

bool is_on_path(const std::string& name, std::string_view path) {
  const auto runs = [](const std::string& file) {
    return ::access(file.c_str(), X_OK) == 0 && !fs::is_directory(file);
  };
  if (name.find('/') != std::string::npos) return runs(name);
  while (!path.empty()) {
    const std::size_t colon = std::min(path.find(':'), path.size());
    if (runs(std::string(path.substr(0, colon)) + "/" + name)) return true;
    path.remove_prefix(std::min(colon + 1, path.size()));
  }
  return false;
}

std::string gpus_text(std::int64_t count) {
  return count == 1 ? "a GPU" : fmt::format("{} GPUs", count);
}

std::string gpus_here(std::size_t count) {
  if (count == 0) return "this machine has none";
  return fmt::format("this machine has {}", count == 1 ? "one" : std::to_string(count));
}

std::optional<std::string> missing_gpus(const Needs& needs, const machine::Machine& machine) {
  if (needs.gpus == 0) return std::nullopt;
  const std::string wanted = gpus_text(needs.gpus) + (needs.nvlink ? " with NVLink" : "");
  if (static_cast<std::int64_t>(machine.gpus.size()) < needs.gpus) {
    return fmt::format("needs {}; {}", wanted, gpus_here(machine.gpus.size()));
  }
  if (machine.gpu_source != machine::GpuSource::kNvml) {
    return fmt::format("needs {}; the GPU driver does not respond", wanted);
  }
  const auto linked = [](const machine::GpuLink& link) { return link.nvlinks > 0; };
  if (needs.nvlink && std::none_of(machine.gpu_links.begin(), machine.gpu_links.end(), linked)) {
    return fmt::format("needs {}; this machine's GPUs have none between them", wanted);
  }
  for (const machine::Gpu& gpu : machine.gpus) {
    if (!needs.gpu_memory || gpu.memory.value_or(base::Bytes()) >= *needs.gpu_memory) continue;
    return fmt::format("needs GPUs of {:.4g} GiB; {} has {:.4g}", *needs.gpu_memory / kOneGib,
                       gpu.name, gpu.memory.value_or(base::Bytes()) / kOneGib);
  }
  return std::nullopt;
}

std::optional<std::string> problem_of_tracer(const std::string& name) {
  for (const collect::Tracer tracer : collect::kTracers) {
    if (collect::name_of(tracer) != name) continue;
    const collect::Preflight found = collect::preflight(tracer);
    if (found.available) return std::nullopt;
    return found.reason;
  }
  return "there is no such tracer";
}

// With a timeout: a command that hangs does not work.
bool command_works(const std::string& command, const std::string& path) {
  const std::string line =
      fmt::format("PATH={} exec timeout 10 sh -c {} </dev/null >/dev/null 2>&1",
                  base::shell_quoted(path), base::shell_quoted(command));
  return std::system(line.c_str()) == 0;
}

}  // namespace

SuiteHost discover_host() {
  SuiteHost host{.machine = machine::discover(), .tracer_problem = problem_of_tracer};
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  host.program = program.string();
  const std::string folder = program.parent_path().string();
  const char* path = std::getenv("PATH");
  // The benchmark programs are built into a folder beside this program.
  host.path = fmt::format("{0}:{0}/bench:{1}", folder, path == nullptr ? "/usr/bin:/bin" : path);
  host.works = [search = host.path](const std::string& command) {
    return command_works(command, search);
  };
  return host;
}

std::optional<std::string> missing_requirement(const Needs& needs, const SuiteHost& host) {
  if (auto gpus = missing_gpus(needs, host.machine)) return gpus;
  if (!needs.tracer.empty()) {
    if (const auto problem = host.tracer_problem(needs.tracer)) {
      return fmt::format("needs the tracer {}: {}", needs.tracer, *problem);
    }
  }
  const std::string hint = needs.hint.empty() || !needs.works.empty() ? "" : "; " + needs.hint;
  for (const std::string& program : needs.programs) {
    if (!is_on_path(program, host.path)) {
      return fmt::format("needs the program {}, which was not found{}", program, hint);
    }
  }
  if (!needs.works.empty() && !host.works(needs.works)) {
    return needs.hint.empty() ? fmt::format("'{}' fails on this machine", needs.works) : needs.hint;
  }
  return std::nullopt;
}

}  // namespace assay::suite
