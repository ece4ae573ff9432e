// The corpus: what is run under strace and under each tracer. To add a case, add a row in cases.cc
// and, if it needs one, a program in programs/ (any .c there is compiled by itself).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/file_model.h"

namespace assay::oracle {

struct Case {
  std::string name;
  // For bash, in a copy of the tree. $RUN is the observer ("strace … --" or
  // "assay run --tracer X --"), $P for the folder of compiled programs, $S for that of sources.
  std::string command;
  // For bash, once, in the tree that is then copied. The tree already has in.txt, old.txt,
  // data/a.txt and data/b.txt.
  std::string setup = {};
  // A command that must be there, or a program in $P ("$P/go_copy"); else the case is skipped.
  std::string needs = {};
  bool for_root = false;
  // What a tracer may miss if it reports that: values of missed[].what. If it does, files that
  // the lineage lacks are forgiven, files that it invents are not.
  std::vector<std::string> may_miss = {};
  // Where strace misses it as well: the expected lineage, by hand.
  std::optional<Lineage> by_hand = {};
  bool too_big_for_strace = false;
  // What must be in missed[], by tracer; the run is then not complete.
  std::map<std::string, std::string> must_miss = {};
  // Outputs that must record their content from before the command wrote to them.
  std::vector<std::string> grows = {};
  int least_processes = 1;
  std::vector<std::string> not_for = {};  // tracers with a limit that the documentation names
};

inline void PrintTo(const Case& which, std::ostream* out) {
  *out << which.command;
}

const std::vector<Case>& all_cases();

}  // namespace assay::oracle
