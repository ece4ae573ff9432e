// Connects the ranks of a job, each with each: over a socket of the machine to ranks on the same
// machine, over TCP to others. Each rank publishes where it listens and a random token; whoever
// connects must show that token, so a stranger on the port is turned away. Nothing listens any more
// when the ranks are connected.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "comm/key_value.h"

namespace assay::comm {

struct ConnectOptions {
  int rank = 0;
  int ranks = 1;
  // A numeric address of this machine, IPv4 or IPv6, that the other ranks can reach.
  std::string address = "127.0.0.1";
  // Every key starts with this: jobs that share a store do not meet.
  std::string prefix = "comm";
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  // TCP also to ranks on the same machine.
  bool only_tcp = false;
};

// One socket per rank, in rank order; this rank's own is not valid. They do not block.
base::Result<std::vector<base::UniqueFd>> connect_ranks(const ConnectOptions& options,
                                                        KeyValue& store);

}  // namespace assay::comm
