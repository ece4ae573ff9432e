// Communicators whose ranks are processes, on one machine or on several, with data in host memory.
//
// Every rank is connected with every other: over a Unix socket to ranks on the same machine, over
// TCP to others. Each rank publishes its address and a random token; a connecting rank must present
// that token, so that other connections to the port are rejected. The listening sockets are closed
// as soon as all ranks are connected.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "comm/communicator.h"
#include "comm/key_value.h"

namespace assay::comm {

struct ProcessGroupOptions {
  int rank = 0;
  int ranks = 1;
  // A numeric address of this machine, IPv4 or IPv6, that the other ranks can reach.
  std::string address = "127.0.0.1";
  // Prefix of every key, so that jobs that share a store do not interfere.
  std::string prefix = "comm";
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  // Uses TCP even for ranks on the same machine.
  bool only_tcp = false;
  // How long a rank waits for the others in a call. Ranks that exit or abort are noticed at once;
  // this timeout is for ranks that hang.
  std::chrono::milliseconds call_timeout = std::chrono::minutes(10);
};

// Connects all ranks; every rank calls it. The store is needed until it returns.
base::Result<std::unique_ptr<Communicator>> connect_processes(const ProcessGroupOptions& options,
                                                              KeyValue& store);

}  // namespace assay::comm
