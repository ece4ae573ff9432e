// Random calls over threads and over processes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/local.h"
#include "comm/testing/random_calls.h"
#include "comm/testing/rank_processes.h"

namespace assay::comm::testing {
namespace {

RC_GTEST_PROP(RandomCalls, OnThreadsAreTheirDefinition, (unsigned seed)) {
  const int ranks = *rc::gen::inRange(1, 9);
  const auto done = run_local(ranks, [&](Communicator& c) {
    HostMemory memory;
    return make_random_calls(c, seed, memory);
  });
  if (!done) RC_FAIL(done.error().line());
}

RC_GTEST_PROP(RandomCalls, OnProcessesAreTheirDefinition, (unsigned seed)) {
  const int ranks = *rc::gen::inRange(1, 9);
  const auto outcomes = run_processes({.ranks = ranks,
                                       .body =
                                           [&](Communicator& c) {
                                             HostMemory memory;
                                             return make_random_calls(c, seed, memory);
                                           },
                                       .only_tcp = *rc::gen::arbitrary<bool>()});
  for (const std::string& outcome : outcomes) {
    if (outcome != "ok") RC_FAIL(fmt::format("{}", fmt::join(outcomes, "; ")));
  }
}

}  // namespace
}  // namespace assay::comm::testing
