// Fixtures on top of StoreTest: a project, and a store in it that jobs are recorded into.
#pragma once

#include <vector>

#include "store/job.h"
#include "store/store.h"
#include "store/testing/fixture.h"

namespace assay::store::testing {

class ProjectTest : public StoreTest {
 protected:
  Location location_ = location_in(directory("project"));
};

class JobsTest : public ProjectTest {
 protected:
  static std::vector<JobId> ids(const std::vector<Job>& jobs) {
    std::vector<JobId> found;
    for (const Job& job : jobs) found.push_back(job.id);
    return found;
  }

  Store store_ = *Store::create(location_, {});
};

}  // namespace assay::store::testing
