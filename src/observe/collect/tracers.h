// The tracers there are: their names, whether each works on this machine, and the collector of
// each.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

// In the order in which `auto` tries them.
inline constexpr std::array kTracers = {Tracer::kPreload, Tracer::kEbpf, Tracer::kPtrace};
std::string_view name_of(Tracer tracer);

// `log` is the path of the event log to be made (see log.h); it stays after the run.
std::unique_ptr<Collector> make_collector(Tracer tracer, const std::filesystem::path& log);

Preflight preflight(Tracer tracer);

// `wanted` if it works here; without it, the first tracer that does.
base::Result<Tracer> choose_tracer(std::optional<Tracer> wanted);

}  // namespace assay::collect
