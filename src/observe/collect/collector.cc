#include "observe/collect/collector.h"

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

}  // namespace assay::collect
