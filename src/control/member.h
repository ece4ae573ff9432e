// What ranks know about each other: members of the job, and the failure that ended it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace assay::control {

enum class MemberState {
  kAbsent,   // has not come yet
  kPresent,  // is there
  kLeft,     // has said goodbye
  kLost,     // its connection ended without
};

struct Member {
  int rank = 0;
  MemberState state = MemberState::kAbsent;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t step = -1;          // the last it reported; -1: none
  double seconds_since_step = 0;   // since that step began
  double seconds_since_heard = 0;  // since its last message of any kind
};

// The first failure of the job. The error's line names the rank.
struct Failure {
  int rank = 0;
  base::Error error;
};

// "3", "1, 3-5, 9", "1, 3, 5, 7, 9, 11, 13, 15 and 40 more"; of sorted ranks.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace assay::control
