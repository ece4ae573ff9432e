// The system calls that the program on_sys_exit looks at, by number.
#pragma once

#include "observe/collect/ebpf/bpf/message.h"

namespace assay::collect {

void set_call_kinds(assay_constants& constants);

}  // namespace assay::collect
