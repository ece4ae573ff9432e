// Runs from a compact description, for tests.
//
//   run_of("prepare raw.txt=r1 -> train.bin=t1 valid.bin=v1")
//
// Words before the first `name=content` are the command. A name is a path below the directory, the
// content stands for its digest (BLAKE3 of the word, so equal words are equal contents). Outputs
// stand after "->": `+name=c` was created (the default), `~name=c` modified, `~name<b=c` written
// into when it held b, `-name` deleted, `old>new=c` renamed. All other fields of the RunRecord have
// simple defaults, different for each run.
#pragma once

#include <string>
#include <string_view>

#include "hash/digest.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store::testing {

inline constexpr std::string_view kDirectory = "/project";

hash::Digest digest_of(std::string_view content);
RunRecord run_of(std::string_view description, std::string_view directory = kDirectory);
// run_of() and record_run(); the id.
RunId record(Store& store, std::string_view description, std::string_view directory = kDirectory);

}  // namespace assay::store::testing
