#include "observe/collect/tracers.h"

#include <fmt/format.h>

#include <string>

#include "observe/collect/ebpf/ebpf.h"
#include "observe/collect/ebpf/preflight.h"
#include "observe/collect/gate/preload.h"
#include "observe/collect/ptrace/ptrace.h"

namespace assay::collect {

std::string_view name_of(Tracer tracer) {
  switch (tracer) {
    case Tracer::kPreload:
      return "preload";
    case Tracer::kEbpf:
      return "ebpf";
    case Tracer::kPtrace:
      return "ptrace";
  }
  return "unknown";
}

std::unique_ptr<Collector> make_collector(Tracer tracer, const std::filesystem::path& log) {
  switch (tracer) {
    case Tracer::kPreload:
      return make_preload_collector(log);
    case Tracer::kEbpf:
      return make_ebpf_collector(log);
    case Tracer::kPtrace:
      return make_ptrace_collector(log);
  }
  return nullptr;
}

Preflight preflight(Tracer tracer) {
  switch (tracer) {
    case Tracer::kPreload:
      return preload_preflight();
    case Tracer::kEbpf:
      return ebpf_preflight();
    case Tracer::kPtrace:
      return ptrace_preflight();
  }
  return {};
}

base::Result<Tracer> choose_tracer(std::optional<Tracer> wanted) {
  // The rest takes milliseconds, and its collector is about to determine it anyway.
  if (wanted == Tracer::kEbpf) {
    const std::string obstacle = ebpf_obstacle();
    if (obstacle.empty()) return *wanted;
    return base::fail(base::unfit_error(std::string(name_of(*wanted)), obstacle,
                                        "`assay tracers` lists what works here"));
  }
  if (wanted) {
    const Preflight found = preflight(*wanted);
    if (found.available) return *wanted;
    return base::fail(base::unfit_error(std::string(name_of(*wanted)), found.reason,
                                        "`assay tracers` lists what works here"));
  }
  std::string reasons;
  for (const Tracer tracer : kTracers) {
    const Preflight found = preflight(tracer);
    if (found.available) return tracer;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name_of(tracer), found.reason);
  }
  return base::fail(base::unfit_error("no tracer works here", reasons));
}

}  // namespace assay::collect
