// Connects every rank of a job with every other: over a Unix socket to ranks on the same machine,
// over TCP to others. Each rank publishes its address and a random token; a connecting rank must
// present that token, so that other connections to the port are rejected. The listening sockets are
// closed as soon as all ranks are connected.
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
  // Prefix of every key, so that jobs that share a store do not interfere.
  std::string prefix = "comm";
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  // Uses TCP even for ranks on the same machine.
  bool only_tcp = false;
};

// One non-blocking socket per rank, in rank order; the entry of this rank is not valid.
base::Result<std::vector<base::UniqueFd>> connect_ranks(const ConnectOptions& options,
                                                        KeyValue& store);

}  // namespace assay::comm
