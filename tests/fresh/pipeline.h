// Random pipelines of small programs that read, list, ask, write, rename and link, and random
// changes by hand between their runs. All names are relative to the project, so that a copy of it
// does the same.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace assay::fresh {

using Random = std::mt19937_64;

struct Stage {
  std::string command;  // for sh
  std::string into;     // where its standard output is redirected to; empty: nowhere
};

struct Pipeline {
  std::string setup;  // for sh: the files that no stage makes
  std::vector<Stage> stages;
};

Pipeline random_pipeline(Random& random);
// For sh: one change of files as a user makes it. Never of a stage's output.
std::string random_change(Random& random);
// For sh: an edit of a file that stage `number` (from 1) may have made.
std::string random_edit(Random& random, std::size_t number);

}  // namespace assay::fresh
