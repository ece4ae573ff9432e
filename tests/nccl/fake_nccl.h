// NCCL for ranks that are threads of one process, with its manners: communicators that do not block
// do everything on separate threads and may not be used meanwhile; one thread may use a
// communicator at a time; what is sent waits until it is received; a communicator's kernels end
// when it is aborted, but not before, and aborting waits for the kernels of the whole device.
// Whoever breaks a rule of it ends the test.
#pragma once

#include "comm/cuda/nccl_library.h"
#include "nccl/listed_calls.h"

namespace assay::fakenccl {

comm::NcclLibrary library();

// What goes wrong from now on.
void hang_in_finalize(bool on);
void never_connect(bool on);
// Every communicator of this rank of the first group has this state.
void set_error(int rank, ncclResult_t state);

// What a rank of the first group was asked for since reset(), as `assay run` counts it.
nccl_testing::Moved counted(int rank);

int communicators_left();
int aborted();
void reset();

}  // namespace assay::fakenccl
