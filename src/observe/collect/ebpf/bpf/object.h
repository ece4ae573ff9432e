// The compiled BPF programs, embedded in this program (object.cc, from bpf/CMakeLists.txt).
#pragma once

#include <cstddef>
#include <span>

namespace assay::collect {

std::span<const std::byte> bpf_object_bytes();

}  // namespace assay::collect
