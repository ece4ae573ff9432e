// Runs as the store returns them: a pipeline of two, for tests to modify, and an export of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lineage/export/export.h"
#include "store/run.h"
#include "store/testing/runs.h"

namespace assay::lineage::testing {

using store::testing::digest_of;

inline store::Input input(const std::string& path, const std::string& content) {
  return {.path = path, .blake3 = digest_of(content), .size = std::ssize(content)};
}

inline store::Output output(const std::string& path, const std::string& content,
                            store::OutputStatus status = store::OutputStatus::kCreated) {
  return {.path = path,
          .blake3 = digest_of(content),
          .size = std::ssize(content),
          .status = status,
          .from = ""};
}

inline store::RunRecord run(store::RunId id, std::vector<std::string> command) {
  store::RunRecord made;
  made.id = id;
  made.uid = "00000000000000" + std::to_string(10 + id);
  made.command = std::move(command);
  made.directory = "/project";
  made.status = store::RunStatus::kDone;
  made.exit_code = 0;
  made.tracer = "preload";
  made.complete = true;
  made.started_unix_ns = 1'800'000'000'000'000'000 + id * 60'000'000'000;
  made.duration_s = 1.5;
  made.stage = id;
  made.context.user = "ann";
  made.context.host = "node1";
  return made;
}

// prepare: /data/raw csv -> /project/clean.csv; train: clean.csv -> /project/model.bin
inline std::vector<store::RunRecord> pipeline() {
  store::RunRecord prepare = run(1, {"python3", "prepare.py", "two words"});
  prepare.inputs = {input("/data/raw \xc3\xa4.csv", "raw"), input("/project/prepare.py", "code")};
  prepare.outputs = {output("/project/clean.csv", "clean")};
  prepare.context.packages = {{"dpkg", "libc6", "2.36-9+deb12u1"}, {"pip", "numpy", "1.26.4"}};
  prepare.context.git = store::Git{.root = "/project",
                                   .commit = std::string(40, 'a'),
                                   .branch = "main",
                                   .remote = "https://example.org/p.git",
                                   .dirty = true,
                                   .diff = "diff",
                                   .left_out = {}};
  store::RunRecord train = run(2, {"/usr/bin/train", "--lr=3e-4"});
  train.name = "train";
  train.inputs = {input("/project/clean.csv", "clean")};
  train.outputs = {output("/project/model.bin", "model"), output("/project/log.txt", "log")};
  return {prepare, train};
}

inline ExportSubject subject_of(std::vector<store::RunRecord> runs) {
  return {.runs = std::move(runs), .project_root = "/project", .project_id = "feedc0de"};
}

}  // namespace assay::lineage::testing
