// Place: which rank of a job this process is, and where rank 0 is, as whoever started the process
// says in its environment. Pure: the environment is a parameter.
//
// Sources, the first that is there counts: our own launcher, torchrun, Open MPI, PMI (MPICH, Intel
// MPI), Slurm.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/endpoint.h"

namespace assay::control {

enum class PlaceSource { kAssay, kTorchrun, kOpenMpi, kPmi, kSlurm, kSlurmBatch };

// "torchrun (RANK, WORLD_SIZE)": for messages.
std::string_view to_text(PlaceSource source);

struct Place {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;   // among the ranks on this node
  int local_ranks = 1;  // how many those are
  PlaceSource source = PlaceSource::kAssay;
  // Where rank 0 listens; empty if there is only one rank and nobody said.
  std::optional<Endpoint> rendezvous;
  // What the source calls this job; empty if it has no name for it.
  std::string job;
  // A socket that already listens at the rendezvous, inherited by rank 0 from our launcher.
  std::optional<int> listener_fd;

  bool operator==(const Place&) const = default;
};

using EnvironmentMap = std::map<std::string, std::string>;

// Nothing if nobody gave this process a place: then it may start ranks of its own. So may a process
// whose place is rank 0 of 1, for example in an sbatch script without srun.
base::Result<std::optional<Place>> find_place(const EnvironmentMap& environment);

// The variables that tell a rank its place, for a launcher.
EnvironmentMap place_variables(const Place& place);

}  // namespace assay::control
