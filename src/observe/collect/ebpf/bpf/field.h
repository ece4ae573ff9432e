// FIELD(type, pointer, field): reads a field of a kernel structure at an untyped address. Since
// Linux 6.2 the verifier can be told the type (bpf_rdonly_cast), and the read is one instruction;
// before, it is a helper call of about ten nanoseconds.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "observe/collect/ebpf/bpf/kernel.h"
#include "observe/collect/ebpf/bpf/message.h"

const volatile struct assay_constants constants SEC(".rodata.constants") = {};

extern void* bpf_rdonly_cast(const void* object, __u32 type) __ksym __weak;

// The address is taken first: a field read inside the arguments would be relocated, too.
#define FIELD(type, pointer, field)                                                          \
  ({                                                                                         \
    const void* from_ = (const void*)(pointer);                                              \
    constants.can_cast                                                                       \
        ? ((const struct type*)bpf_rdonly_cast(from_, bpf_core_type_id_kernel(struct type))) \
              ->field                                                                        \
        : BPF_CORE_READ((const struct type*)from_, field);                                   \
  })
