// Sets which system calls the BPF program on_sys_exit handles, by number.
#pragma once

#include "observe/collect/ebpf/bpf/message.h"

namespace assay::collect {

void set_call_kinds(assay_constants& constants);

}  // namespace assay::collect
