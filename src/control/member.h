// What ranks know about each other: the members of the job, and the failure that ended it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace assay::control {

enum class MemberState {
  kAbsent,   // has not joined yet
  kPresent,  // has joined
  kLeft,     // has said goodbye
  kLost,     // its connection ended without a goodbye
};

struct Member {
  int rank = 0;
  MemberState state = MemberState::kAbsent;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t step = -1;             // the last one reported; -1: none
  double seconds_since_step = 0;      // since that step began
  double seconds_since_received = 0;  // since its last message of any kind
};

// The first failure of the job. The error's text names the rank.
struct Failure {
  int rank = 0;
  base::Error error;
};

// For sorted ranks: "3", "1, 3-5, 9", "1, 3, 5, 7, 9, 11, 13, 15 and 40 more".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace assay::control
