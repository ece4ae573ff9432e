// What launchers set, according to their documentation and real environments, and what they should
// never set.
#include "control/rank_assignment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RankAssignment found(const EnvironmentMap& environment) {
  const auto assignment = find_rank_assignment(environment);
  EXPECT_TRUE(assignment) << assignment.error().line();
  if (!assignment || !*assignment) {
    ADD_FAILURE() << "no place";
    return {};
  }
  return **assignment;
}

std::string refused(const EnvironmentMap& environment) {
  const auto assignment = find_rank_assignment(environment);
  if (assignment) {
    ADD_FAILURE() << "a place was found";
    return "";
  }
  EXPECT_EQ(assignment.error().code, base::ExitCode::kUsage);
  return assignment.error().line();
}

EnvironmentMap with(EnvironmentMap environment, const EnvironmentMap& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

EnvironmentMap without(EnvironmentMap environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

const EnvironmentMap kTorchrun{{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "1234"}};

// The environment of a batch script with --ntasks=4 on four nodes.
const EnvironmentMap kBatch{{"SLURM_JOB_ID", "200505"}, {"SLURM_NODELIST", "gnode[10,20,25,37]"},
                            {"SLURM_NTASKS", "4"},      {"SLURM_TASKS_PER_NODE", "1(x4)"},
                            {"SLURM_PROCID", "0"},      {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "0"}};

// The environment of a task that srun started in it.
const EnvironmentMap kSrun = with(kBatch, {{"SLURM_STEP_ID", "2"},
                                           {"SLURM_STEP_NUM_TASKS", "3"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                                           {"SLURM_STEP_NODELIST", "gnode[20,25]"},
                                           {"SLURM_PROCID", "1"},
                                           {"SLURM_LOCALID", "1"},
                                           {"SLURM_NODEID", "0"}});

const EnvironmentMap kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};

TEST(RankAssignment, NobodySaysAnything) {
  const auto assignment =
      find_rank_assignment({{"HOME", "/root"}, {"MASTER_ADDR", "x"}, {"SLURM_JOB_ID", "7"}});
  ASSERT_TRUE(assignment);
  EXPECT_EQ(*assignment, std::nullopt);
}

TEST(RankAssignment, Torchrun) {
  EXPECT_EQ(found(kTorchrun), (RankAssignment{.rank = 5,
                                              .ranks = 8,
                                              .local_rank = 1,
                                              .local_ranks = 4,
                                              .source = LauncherKind::kTorchrun,
                                              .rendezvous = base::HostPort{"node1", 1234}}));
  EXPECT_EQ(found(without(kTorchrun, "MASTER_PORT")).rendezvous->port, 29500);
  // The agent of torchrun itself listens at MASTER_PORT.
  EXPECT_EQ(found(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})).rendezvous->port,
            1235);
  EXPECT_EQ(found(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}})).job, "torchrun-none");
  EXPECT_EQ(found(with(kTorchrun, {{"MASTER_ADDR", "[::1]"}})).rendezvous->host, "::1");
  EXPECT_EQ(found({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).ranks, 1);
}

TEST(RankAssignment, HalfSetOrContradictory) {
  EXPECT_THAT(refused({{"WORLD_SIZE", "8"}}), HasSubstr("RANK: is not set, but WORLD_SIZE is"));
  EXPECT_THAT(refused({{"RANK", "8"}}), HasSubstr("WORLD_SIZE: is not set, but RANK is"));
  EXPECT_THAT(refused(without(kTorchrun, "LOCAL_RANK")), HasSubstr("LOCAL_RANK: is not set"));
  EXPECT_THAT(refused(without(kTorchrun, "MASTER_ADDR")),
              AllOf(HasSubstr("torchrun (RANK, WORLD_SIZE)"), HasSubstr("where rank 0 is"),
                    HasSubstr("ASSAY_RENDEZVOUS")));
  EXPECT_THAT(refused(with(kTorchrun, {{"RANK", "8"}})),
              HasSubstr("RANK: rank 8 does not exist: WORLD_SIZE=8"));
  EXPECT_THAT(refused(with(kTorchrun, {{"LOCAL_RANK", "4"}})), HasSubstr("LOCAL_WORLD_SIZE=4"));
  EXPECT_THAT(refused(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}})),
              HasSubstr("LOCAL_WORLD_SIZE: 9 ranks on this node, but WORLD_SIZE=8"));
  for (const char* bad : {"x", "-1", "1.5", "99999999999999999999", "0x1", "1 2"}) {
    EXPECT_THAT(refused(with(kTorchrun, {{"RANK", bad}})),
                HasSubstr(fmt::format("RANK: '{}' is not a number", bad)));
  }
  EXPECT_THAT(refused(with(kTorchrun, {{"MASTER_PORT", "65536"}})), HasSubstr("MASTER_PORT"));
}

TEST(RankAssignment, Srun) {
  EXPECT_EQ(
      found(kSrun),
      (RankAssignment{.rank = 1,
                      .ranks = 3,
                      .local_rank = 1,
                      .local_ranks = 2,
                      .source = LauncherKind::kSlurm,
                      .rendezvous = base::HostPort{"gnode20", 12000 + (200505 + 2 * 7919) % 20000},
                      .job = "slurm-200505.2"}));
  // Older releases name the job's variables only.
  const RankAssignment older =
      found(without(without(without(with(kSrun, {{"SLURM_NODEID", "3"}, {"SLURM_LOCALID", "0"}}),
                                    "SLURM_STEP_NUM_TASKS"),
                            "SLURM_STEP_TASKS_PER_NODE"),
                    "SLURM_STEP_NODELIST"));
  EXPECT_EQ(older.ranks, 4);
  EXPECT_EQ(older.local_ranks, 1);
  EXPECT_EQ(older.rendezvous->host, "gnode10");
  // All ranks of a job compute the same port; concurrent steps get different ones.
  EXPECT_EQ(found(with(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}})).rendezvous,
            found(kSrun).rendezvous);
  EXPECT_NE(found(with(kSrun, {{"SLURM_STEP_ID", "3"}})).rendezvous, found(kSrun).rendezvous);
  // On one node no name is needed.
  EXPECT_EQ(found(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "3"}})).rendezvous->host, "127.0.0.1");
  // An explicitly given address is used.
  EXPECT_EQ(found(with(kSrun, {{"MASTER_ADDR", "10.0.0.1"}})).rendezvous->host, "10.0.0.1");
  EXPECT_EQ(found(with(kSrun, {{"ASSAY_RENDEZVOUS", "[::1]:5"}})).rendezvous,
            (base::HostPort{"::1", 5}));
}

TEST(RankAssignment, ABatchScriptIsOneProcessWhateverItsTasks) {
  const RankAssignment batch = found(kBatch);
  EXPECT_EQ(batch.ranks, 1);
  EXPECT_EQ(batch.source, LauncherKind::kSlurmBatch);
  EXPECT_EQ(found(with(kBatch, {{"SLURM_NTASKS", "1"}})).ranks, 1);
  // Interactive steps of salloc have a reserved id.
  EXPECT_EQ(found(with(kBatch, {{"SLURM_STEP_ID", "4294967290"}})).ranks, 1);
  EXPECT_EQ(found(with(kBatch, {{"WORLD_SIZE", "4"}})).ranks, 1);
  EXPECT_EQ(found(with(kSrun, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})).ranks, 1);
  EXPECT_THAT(refused(with(kBatch, {{"SLURM_PROCID", "1"}})),
              HasSubstr("SLURM_STEP_ID is not set"));
}

TEST(RankAssignment, SlurmContradictions) {
  EXPECT_THAT(refused(with(kSrun, {{"SLURM_PROCID", "3"}})), HasSubstr("SLURM_STEP_NUM_TASKS=3"));
  EXPECT_THAT(refused(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "two"}})),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE: 'two'"));
  EXPECT_THAT(refused(with(kSrun, {{"SLURM_NODEID", "2"}})), HasSubstr("node 2"));
  EXPECT_THAT(refused(with(kSrun, {{"SLURM_LOCALID", "2"}})), HasSubstr("SLURM_LOCALID=2"));
  EXPECT_THAT(refused(with(kSrun, {{"SLURM_STEP_NODELIST", "gnode["}})),
              HasSubstr("SLURM_STEP_NODELIST: 'gnode['"));
  EXPECT_THAT(refused(with(kSrun, {{"WORLD_SIZE", "4"}})), HasSubstr("WORLD_SIZE: says 4"));
  EXPECT_EQ(found(with(kSrun, {{"WORLD_SIZE", "3"}})).source, LauncherKind::kSlurm);
}

TEST(RankAssignment, OpenMpiAndPmiNeedAnAddress) {
  EXPECT_THAT(refused(kOpenMpi), AllOf(HasSubstr("Open MPI"), HasSubstr("where rank 0 is")));
  const RankAssignment mpi = found(with(kOpenMpi, {{"MASTER_ADDR", "a"}}));
  EXPECT_EQ(mpi.source, LauncherKind::kOpenMpi);
  EXPECT_EQ(mpi.rendezvous, (base::HostPort{"a", 29500}));
  const EnvironmentMap pmi{
      {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_THAT(refused(pmi), HasSubstr("PMI"));
  EXPECT_EQ(found(with(pmi, {{"ASSAY_RENDEZVOUS", "a:1"}})).source, LauncherKind::kPmi);
}

TEST(RankAssignment, WhoWins) {
  const EnvironmentMap own{{"ASSAY_RANK", "0"},
                           {"ASSAY_RANKS", "2"},
                           {"ASSAY_LOCAL_RANK", "0"},
                           {"ASSAY_LOCAL_RANKS", "2"},
                           {"ASSAY_RENDEZVOUS", "127.0.0.1:7"},
                           {"ASSAY_RENDEZVOUS_FD", "9"},
                           {"ASSAY_JOB_ID", "j"}};
  const RankAssignment assignment = found(with(with(kTorchrun, kSrun), own));
  EXPECT_EQ(assignment.source, LauncherKind::kAssay);
  EXPECT_EQ(assignment.listener_fd, 9);
  EXPECT_EQ(assignment.job, "j");
  EXPECT_THAT(refused(without(own, "ASSAY_RENDEZVOUS")), HasSubstr("where rank 0 is"));
  EXPECT_THAT(refused({{"ASSAY_RANK", "0"}}), HasSubstr("ASSAY_RANKS: is not set"));
  // srun may start torchrun or mpirun; and srun itself sets PMI's variables.
  EXPECT_EQ(found(with(kSrun, kTorchrun)).source, LauncherKind::kTorchrun);
  EXPECT_EQ(found(with(with(kSrun, kOpenMpi), {{"MASTER_ADDR", "a"}})).source,
            LauncherKind::kOpenMpi);
  EXPECT_EQ(found(with(kSrun, {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}})).source,
            LauncherKind::kSlurm);
  EXPECT_THAT(refused(with(kSrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}})),
              HasSubstr("MPI_LOCALRANKID"));
}

RC_GTEST_PROP(RankAssignment, WhatALauncherSetsIsFound, ()) {
  RankAssignment assignment;
  assignment.ranks = *rc::gen::inRange(2, 100);
  assignment.rank = *rc::gen::inRange(0, assignment.ranks);
  assignment.local_rank = *rc::gen::inRange(0, assignment.rank + 1);
  assignment.local_ranks = *rc::gen::inRange(assignment.local_rank + 1, assignment.ranks + 1);
  assignment.rendezvous = base::HostPort{*rc::gen::element<std::string>("::1", "127.0.0.1", "node"),
                                         *rc::gen::arbitrary<std::uint16_t>()};
  assignment.job = *rc::gen::element<std::string>("", "job 1");
  if (assignment.rank == 0) assignment.listener_fd = *rc::gen::inRange(3, 1000);
  const auto again = find_rank_assignment(rank_variables(assignment));
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == assignment);
}

RC_GTEST_PROP(RankAssignment, AnyValuesGiveAPlaceInRangeOrOneLine, ()) {
  const auto names = std::vector<std::string>{"RANK",           "WORLD_SIZE",
                                              "LOCAL_RANK",     "LOCAL_WORLD_SIZE",
                                              "MASTER_ADDR",    "SLURM_PROCID",
                                              "SLURM_NTASKS",   "SLURM_LOCALID",
                                              "SLURM_NODEID",   "SLURM_TASKS_PER_NODE",
                                              "SLURM_NODELIST", "SLURM_STEP_ID",
                                              "SLURM_JOB_ID",   "PMI_RANK",
                                              "PMI_SIZE",       "ASSAY_RENDEZVOUS"};
  EnvironmentMap environment;
  for (const std::string& name : names) {
    if (*rc::gen::arbitrary<bool>()) {
      environment[name] = *rc::gen::element<std::string>("0", "1", "2", "3", "", "x", "2(x3)",
                                                         "a:1", "n[1-3]", "-1", "4294967290");
    }
  }
  const auto assignment = find_rank_assignment(environment);
  if (!assignment) {
    RC_ASSERT(!assignment.error().where.empty());
    RC_ASSERT(assignment.error().line().find('\n') == std::string::npos);
  } else if (*assignment) {
    RC_ASSERT((*assignment)->rank >= 0 && (*assignment)->rank < (*assignment)->ranks);
    RC_ASSERT((*assignment)->local_rank >= 0 &&
              (*assignment)->local_rank < (*assignment)->local_ranks);
    RC_ASSERT((*assignment)->local_ranks <= (*assignment)->ranks);
    RC_ASSERT((*assignment)->ranks == 1 || (*assignment)->rendezvous.has_value());
  }
}

}  // namespace
}  // namespace assay::control
