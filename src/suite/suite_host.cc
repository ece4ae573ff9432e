#include "suite/suite_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/process/process.h"
#include "base/process/program.h"
#include "machine/discover.h"
#include "observe/collect/tracers.h"

namespace assay::suite {
namespace {

constexpr std::chrono::seconds kProbeTimeout{10};
constexpr base::Bytes kOneGib(std::int64_t{1} << 30);

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
  base::Environment environment = base::Environment::from_current();
  environment.set("PATH", path);
  auto process = base::Process::start(
      {.arguments = {"sh", "-c", command},
       .environment = std::move(environment),
       .redirections = {base::from_null(0), base::from_null(1), base::from_null(2)}});
  if (!process) return false;
  const auto exit = process->wait_until(std::chrono::steady_clock::now() + kProbeTimeout);
  return exit && exit->wait_status == 0;
}

}  // namespace

SuiteHost discover_host() {
  SuiteHost host{.machine = machine::discover(), .tracer_problem = problem_of_tracer};
  const std::filesystem::path program = base::own_program();
  host.program = program.string();
  const std::string folder = program.parent_path().string();
  // The benchmark programs are built into a folder beside this program.
  host.path = fmt::format("{0}:{0}/bench:{1}", folder, base::current_search_path());
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
    if (!base::find_program(program, host.path)) {
      return fmt::format("needs the program {}, which was not found{}", program, hint);
    }
  }
  if (!needs.works.empty() && !host.works(needs.works)) {
    return needs.hint.empty() ? fmt::format("'{}' fails on this machine", needs.works) : needs.hint;
  }
  return std::nullopt;
}

}  // namespace assay::suite
