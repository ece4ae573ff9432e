// RankAssignment: which rank of a job this process is, and the address of rank 0, according to the
// environment set by the launcher. Pure: the environment is a parameter.
//
// The first of these launchers that is found counts: our own, torchrun, Open MPI, PMI (MPICH, Intel
// MPI), Slurm.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/host_port.h"
#include "base/result.h"

namespace assay::control {

enum class LauncherKind { kAssay, kTorchrun, kOpenMpi, kPmi, kSlurm, kSlurmBatch };

// "torchrun (RANK, WORLD_SIZE)": for messages.
std::string_view to_text(LauncherKind source);

struct RankAssignment {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;   // among the ranks on this node
  int local_ranks = 1;  // number of ranks on this node
  LauncherKind source = LauncherKind::kAssay;
  // Rank 0's address; empty if there is only one rank and the launcher gave none.
  std::optional<base::HostPort> rendezvous;
  // The launcher's name for the job; empty if it has none.
  std::string job;
  // A socket already listening at the rendezvous, which rank 0 inherits from our launcher.
  std::optional<int> listener_fd;

  bool operator==(const RankAssignment&) const = default;
};

using EnvironmentMap = std::map<std::string, std::string>;

// Nothing if no launcher has assigned a place: this process may then start ranks itself. So may a
// process that is rank 0 of 1, for example in an sbatch script without srun.
base::Result<std::optional<RankAssignment>> find_rank_assignment(const EnvironmentMap& environment);

// The environment variables with which a launcher assigns a place.
EnvironmentMap rank_variables(const RankAssignment& assignment);

}  // namespace assay::control
