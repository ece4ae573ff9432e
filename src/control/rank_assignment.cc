#include "control/rank_assignment.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/number.h"
#include "base/text.h"
#include "control/slurm_lists.h"

namespace assay::control {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::uint16_t kTorchPort = 29500;  // torch.distributed's default
constexpr const char* kRendezvousHint =
    "set ASSAY_RENDEZVOUS=HOST:PORT, the same for all ranks, HOST being rank 0's";

using Text = std::optional<std::string_view>;

// The variables of one launcher. An empty variable counts as unset: scripts of launchers pass on
// variables that they do not have.
class Variables {
 public:
  explicit Variables(const EnvironmentMap& environment) : environment_(environment) {}

  [[nodiscard]] Text text(const std::string& name) const {
    const auto found = environment_.find(name);
    if (found == environment_.end() || base::trim(found->second).empty()) return std::nullopt;
    return base::trim(found->second);
  }
  [[nodiscard]] bool has(const std::string& name) const { return text(name).has_value(); }

  [[nodiscard]] base::Result<std::int64_t> number(const std::string& name, std::int64_t low,
                                                  std::int64_t high) const {
    const Text value = text(name);
    if (!value) return base::fail(base::usage_error(name, "is not set"));
    const auto number = base::parse_number<std::int64_t>(*value);
    if (!number || *number < low || *number > high) {
      return base::fail(base::usage_error(
          name, fmt::format("'{}' is not a number from {} to {}", *value, low, high)));
    }
    return *number;
  }

 private:
  const EnvironmentMap& environment_;
};

struct Names {
  std::string rank, ranks, local_rank, local_ranks;
};

// Reads rank, ranks, local rank and local ranks from four variables, which must all be set; with a
// single rank the local ones may be missing.
base::Result<RankAssignment> read_four(const Variables& variables, const Names& names,
                                       LauncherKind source) {
  RankAssignment assignment;
  assignment.source = source;
  for (const std::string& name : {names.rank, names.ranks}) {
    if (!variables.has(name)) {
      const std::string& other = name == names.rank ? names.ranks : names.rank;
      return base::fail(
          base::usage_error(name, fmt::format("is not set, but {} is", other),
                            "set both, or neither to let assay start the ranks itself"));
    }
  }
  ASSAY_TRY(const std::int64_t ranks, variables.number(names.ranks, 1, kMostRanks));
  ASSAY_TRY(const std::int64_t rank, variables.number(names.rank, 0, kMostRanks));
  if (rank >= ranks) {
    return base::fail(base::usage_error(
        names.rank, fmt::format("rank {} does not exist: {}={}, so the last rank is {}", rank,
                                names.ranks, ranks, ranks - 1)));
  }
  assignment.rank = static_cast<int>(rank);
  assignment.ranks = static_cast<int>(ranks);
  if (ranks == 1 && !variables.has(names.local_rank) && !variables.has(names.local_ranks)) {
    return assignment;
  }
  for (const std::string& name : {names.local_rank, names.local_ranks}) {
    if (!variables.has(name)) {
      return base::fail(base::usage_error(
          name, fmt::format("is not set, but {} and {} are", names.rank, names.ranks),
          "a rank must know its index on its node"));
    }
  }
  ASSAY_TRY(const std::int64_t local_ranks, variables.number(names.local_ranks, 1, kMostRanks));
  ASSAY_TRY(const std::int64_t local_rank, variables.number(names.local_rank, 0, kMostRanks));
  if (local_ranks > ranks) {
    return base::fail(base::usage_error(
        names.local_ranks,
        fmt::format("{} ranks on this node, but {}={}", local_ranks, names.ranks, ranks)));
  }
  if (local_rank >= local_ranks || local_rank > rank) {
    return base::fail(base::usage_error(
        names.local_rank,
        fmt::format("contradicts the others: {}={}, {}={}, {}={}", names.local_rank, local_rank,
                    names.local_ranks, local_ranks, names.rank, rank)));
  }
  assignment.local_rank = static_cast<int>(local_rank);
  assignment.local_ranks = static_cast<int>(local_ranks);
  return assignment;
}

// Rank 0's address for launchers that do not provide one: ASSAY_RENDEZVOUS, else MASTER_ADDR with
// MASTER_PORT or `default_port`. Nothing if neither is set.
base::Result<std::optional<base::HostPort>> given_rendezvous(const Variables& variables,
                                                             std::uint16_t default_port) {
  if (const Text text = variables.text("ASSAY_RENDEZVOUS")) {
    ASSAY_TRY(base::HostPort endpoint,
              base::parse_host_port("ASSAY_RENDEZVOUS", *text,
                                    "write HOST:PORT or [IPV6]:PORT, for example node1:29500"));
    return endpoint;
  }
  const Text host = variables.text("MASTER_ADDR");
  if (!host) return std::nullopt;
  base::HostPort endpoint{std::string(*host), default_port};
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  if (variables.has("MASTER_PORT")) {
    ASSAY_TRY(const std::int64_t port, variables.number("MASTER_PORT", 1, 65535));
    endpoint.port = static_cast<std::uint16_t>(port);
    // torchrun's agent listens at MASTER_PORT itself and tells its workers so.
    if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
      endpoint.port = port == 65535 ? 1024 : static_cast<std::uint16_t>(port + 1);
    }
  }
  return endpoint;
}

base::Result<std::optional<RankAssignment>> with_rendezvous(const Variables& variables,
                                                            RankAssignment assignment) {
  ASSAY_TRY(assignment.rendezvous, given_rendezvous(variables, kTorchPort));
  if (!assignment.rendezvous && assignment.ranks > 1) {
    return base::fail(base::usage_error(std::string(to_text(assignment.source)),
                                        fmt::format("rank {} of {} does not know where rank 0 is",
                                                    assignment.rank, assignment.ranks),
                                        kRendezvousHint));
  }
  return assignment;
}

base::Result<std::optional<RankAssignment>> assay_assignment(const Variables& variables) {
  const Names names{"ASSAY_RANK", "ASSAY_RANKS", "ASSAY_LOCAL_RANK", "ASSAY_LOCAL_RANKS"};
  ASSAY_TRY(RankAssignment assignment, read_four(variables, names, LauncherKind::kAssay));
  if (const Text job = variables.text("ASSAY_JOB_ID")) assignment.job = *job;
  if (assignment.rank == 0 && variables.has("ASSAY_RENDEZVOUS_FD")) {
    ASSAY_TRY(const std::int64_t fd, variables.number("ASSAY_RENDEZVOUS_FD", 3, 1'000'000));
    assignment.listener_fd = static_cast<int>(fd);
  }
  return with_rendezvous(variables, std::move(assignment));
}

base::Result<std::optional<RankAssignment>> torchrun_assignment(const Variables& variables) {
  const Names names{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
  ASSAY_TRY(RankAssignment assignment, read_four(variables, names, LauncherKind::kTorchrun));
  if (const Text run = variables.text("TORCHELASTIC_RUN_ID")) {
    assignment.job = fmt::format("torchrun-{}", *run);
  }
  return with_rendezvous(variables, std::move(assignment));
}

base::Result<std::optional<RankAssignment>> open_mpi_assignment(const Variables& variables) {
  const Names names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                    "OMPI_COMM_WORLD_LOCAL_SIZE"};
  ASSAY_TRY(RankAssignment assignment, read_four(variables, names, LauncherKind::kOpenMpi));
  if (const Text space = variables.text("PMIX_NAMESPACE")) {
    assignment.job = fmt::format("mpi-{}", *space);
  }
  return with_rendezvous(variables, std::move(assignment));
}

base::Result<std::optional<RankAssignment>> pmi_assignment(const Variables& variables) {
  const Names names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
  ASSAY_TRY(RankAssignment assignment, read_four(variables, names, LauncherKind::kPmi));
  return with_rendezvous(variables, std::move(assignment));
}

// The Slurm step in which srun started this task. Batch scripts and interactive shells have no step
// id, or one of the reserved ones at the end of the 32-bit range.
std::optional<std::int64_t> slurm_step(const Variables& variables) {
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) {
    const auto step = variables.number(name, 0, 0xFFFFFFF0 - 1);
    if (step) return *step;
  }
  return std::nullopt;
}

// The first of the two variables that is set: what Slurm says about the step, else about the job.
std::string first_set(const Variables& variables, const char* step, const char* job) {
  return variables.has(step) ? step : job;
}

base::Result<std::optional<RankAssignment>> slurm_assignment(const Variables& variables) {
  ASSAY_TRY(const std::int64_t rank, variables.number("SLURM_PROCID", 0, kMostRanks));
  const auto step = slurm_step(variables);
  const Text job = variables.text("SLURM_JOB_ID");
  RankAssignment assignment;
  assignment.source = step ? LauncherKind::kSlurm : LauncherKind::kSlurmBatch;
  if (job) assignment.job = fmt::format("slurm-{}.{}", *job, step.value_or(0));
  if (!step) {
    if (rank == 0) return assignment;
    return base::fail(base::usage_error("SLURM_PROCID",
                                        fmt::format("says {}, but SLURM_STEP_ID is not set", rank),
                                        "pass all of srun's variables on"));
  }
  const std::string ranks_name = first_set(variables, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  ASSAY_TRY(const std::int64_t ranks, variables.number(ranks_name, 1, kMostRanks));
  if (rank >= ranks) {
    return base::fail(base::usage_error(
        "SLURM_PROCID", fmt::format("rank {} does not exist: {}={}", rank, ranks_name, ranks)));
  }
  assignment.rank = static_cast<int>(rank);
  assignment.ranks = static_cast<int>(ranks);
  if (ranks == 1) return assignment;

  ASSAY_TRY(const std::int64_t node, variables.number("SLURM_NODEID", 0, kMostRanks));
  ASSAY_TRY(const std::int64_t local_rank, variables.number("SLURM_LOCALID", 0, kMostRanks));
  const std::string tasks_name =
      first_set(variables, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
  const Text tasks = variables.text(tasks_name);
  const auto local_ranks = tasks_on_node(tasks.value_or(""), static_cast<int>(node));
  if (!local_ranks) {
    return base::fail(base::usage_error(
        tasks_name, fmt::format("'{}' does not say how many tasks run on node {} (SLURM_NODEID)",
                                tasks.value_or(""), node)));
  }
  if (local_rank >= *local_ranks || *local_ranks > ranks) {
    return base::fail(base::usage_error(
        "SLURM_LOCALID",
        fmt::format("contradicts the others: SLURM_LOCALID={}, {} tasks on node "
                    "{} ({}={}), {}={}",
                    local_rank, *local_ranks, node, tasks_name, *tasks, ranks_name, ranks)));
  }
  assignment.local_rank = static_cast<int>(local_rank);
  assignment.local_ranks = *local_ranks;

  // Ports below the kernel's range for outgoing connections; consecutive jobs get different ones.
  const std::int64_t job_number = variables.number("SLURM_JOB_ID", 0, INT64_MAX / 2).value_or(0);
  const auto port = static_cast<std::uint16_t>(12000 + (job_number + *step * 7919) % 20000);
  ASSAY_TRY(assignment.rendezvous, given_rendezvous(variables, port));
  if (assignment.rendezvous) return assignment;
  const std::string list_name = first_set(variables, "SLURM_STEP_NODELIST", "SLURM_NODELIST");
  const Text list = variables.text(list_name);
  const auto host = first_host(list.value_or(""));
  if (!host) {
    return base::fail(base::usage_error(
        list_name, fmt::format("'{}' is not a list of hosts", list.value_or("")), kRendezvousHint));
  }
  // On a single node no name has to be resolved.
  const bool one_node = assignment.local_ranks == assignment.ranks;
  assignment.rendezvous = base::HostPort{one_node ? "127.0.0.1" : *host, port};
  return assignment;
}

// srun --mpi=pmi2 sets PMI's variables in addition to its own, and only its own give the address of
// rank 0. mpiexec inside an allocation sets PMI's, and Slurm's are those of its helper on the node.
bool pmi_is_slurm(const Variables& variables) {
  return slurm_step(variables) && variables.text("PMI_RANK") == variables.text("SLURM_PROCID") &&
         variables.text("PMI_SIZE") ==
             variables.text(first_set(variables, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"));
}

}  // namespace

std::string_view to_text(LauncherKind source) {
  switch (source) {
    case LauncherKind::kAssay:
      return "assay (ASSAY_RANK, ASSAY_RANKS)";
    case LauncherKind::kTorchrun:
      return "torchrun (RANK, WORLD_SIZE)";
    case LauncherKind::kOpenMpi:
      return "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)";
    case LauncherKind::kPmi:
      return "PMI (PMI_RANK, PMI_SIZE)";
    case LauncherKind::kSlurm:
      return "Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS)";
    case LauncherKind::kSlurmBatch:
      return "a Slurm batch script (SLURM_PROCID without SLURM_STEP_ID)";
  }
  return "?";
}

base::Result<std::optional<RankAssignment>> find_rank_assignment(
    const EnvironmentMap& environment) {
  const Variables variables(environment);
  if (variables.has("ASSAY_RANK") || variables.has("ASSAY_RANKS"))
    return assay_assignment(variables);
  if (variables.has("RANK")) return torchrun_assignment(variables);
  const bool open_mpi =
      variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE");
  const bool pmi =
      (variables.has("PMI_RANK") || variables.has("PMI_SIZE")) && !pmi_is_slurm(variables);
  const bool slurm = variables.has("SLURM_PROCID");
  std::optional<RankAssignment> assignment;
  if (open_mpi) {
    ASSAY_TRY(assignment, open_mpi_assignment(variables));
  } else if (pmi) {
    ASSAY_TRY(assignment, pmi_assignment(variables));
  } else if (slurm) {
    ASSAY_TRY(assignment, slurm_assignment(variables));
  } else if (variables.has("WORLD_SIZE")) {
    return torchrun_assignment(
        variables);  // incomplete: the error says which variables are missing
  }
  // Scripts for srun often export WORLD_SIZE without RANK. It must agree.
  if (assignment && assignment->source != LauncherKind::kSlurmBatch &&
      variables.has("WORLD_SIZE")) {
    ASSAY_TRY(const std::int64_t ranks, variables.number("WORLD_SIZE", 1, kMostRanks));
    if (ranks != assignment->ranks) {
      return base::fail(
          base::usage_error("WORLD_SIZE",
                            fmt::format("says {}, but {} says that there are {} ranks", ranks,
                                        to_text(assignment->source), assignment->ranks),
                            "unset WORLD_SIZE"));
    }
  }
  return assignment;
}

EnvironmentMap rank_variables(const RankAssignment& assignment) {
  EnvironmentMap variables{{"ASSAY_RANK", std::to_string(assignment.rank)},
                           {"ASSAY_RANKS", std::to_string(assignment.ranks)},
                           {"ASSAY_LOCAL_RANK", std::to_string(assignment.local_rank)},
                           {"ASSAY_LOCAL_RANKS", std::to_string(assignment.local_ranks)}};
  if (assignment.rendezvous) variables["ASSAY_RENDEZVOUS"] = to_text(*assignment.rendezvous);
  if (!assignment.job.empty()) variables["ASSAY_JOB_ID"] = assignment.job;
  if (assignment.listener_fd)
    variables["ASSAY_RENDEZVOUS_FD"] = std::to_string(*assignment.listener_fd);
  return variables;
}

}  // namespace assay::control
