// Communicators over NCCL, whose ranks are processes with one GPU each.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "comm/key_value.h"

namespace assay::comm {

struct NcclOptions {
  int rank = 0;
  int ranks = 1;
  int device = 0;  // index among this process's GPUs
  // How long ranks wait for each other to connect, here and in each split.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
  // How long a call may take once this rank's part of it is ready. NCCL notices that a rank has
  // ended only if it is connected over a network; this timeout covers all other ranks, and ranks
  // that hang.
  std::chrono::milliseconds call_timeout = std::chrono::minutes(10);
  // Size of an all-gather that a new group executes once, so that NCCL establishes the connections
  // for large calls and allocates its memory before the rest is used up.
  std::int64_t first_bytes = std::int64_t{64} << 20U;
  // Whether the job has failed elsewhere. Called while waiting, from several threads; may be empty.
  std::function<std::optional<base::Error>()> failed;
};

// Connects all ranks; every rank calls it. The store is needed until it returns. Works on device
// memory: issuing a call queues it after what the caller's stream holds, on a stream of the group's
// own, and waiting makes the caller's stream wait. Calls of different ranks are not compared.
// Counts in device memory (AllToAllParts::on_device) are refused, because NCCL needs them on the
// host. A failure or an abort affects all groups of this rank; the caller must inform the other
// ranks.
base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclOptions& options,
                                                         KeyValue& store);

// The same with a given library, which may be a test's.
struct NcclLibrary;
base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclLibrary& nccl,
                                                         const NcclOptions& options,
                                                         KeyValue& store);

}  // namespace assay::comm
