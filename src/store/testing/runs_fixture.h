// Fixtures on top of StoreTest: a project, and a store in it that runs are recorded into.
#pragma once

#include <vector>

#include "store/run.h"
#include "store/store.h"
#include "store/testing/fixture.h"

namespace assay::store::testing {

class ProjectTest : public StoreTest {
 protected:
  Location location_ = location_in(directory("project"));
};

class RunsTest : public ProjectTest {
 protected:
  static std::vector<RunId> ids(const std::vector<RunRecord>& runs) {
    std::vector<RunId> found;
    for (const RunRecord& run : runs) found.push_back(run.id);
    return found;
  }

  Store store_ = *Store::create(location_, {});
};

}  // namespace assay::store::testing
