#include "oracle/recorded.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "oracle/sandbox.h"

namespace assay::oracle {

namespace fs = std::filesystem;
using base::Json;

namespace {

support::ProcessResult assay(std::vector<std::string> arguments, const fs::path& where) {
  arguments.insert(arguments.begin(), support::program());
  return support::run({arguments, "", where});
}

// JSON is UTF-8: what is not has the replacement character there.
std::string in_json(const std::string& path) {
  return Json::parse(Json(path).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

const std::vector<std::string>& tracers() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names;
    const Json all = Json::parse(assay({"tracers", "--json"}, "/").out, nullptr, false);
    if (all.is_discarded()) return names;
    for (const Json& tracer : all.is_object() ? all["tracers"] : all) {
      if (tracer["available"].get<bool>()) names.push_back(tracer["name"].get<std::string>());
    }
    return names;
  }();
  return found;
}

Json finished_run(const fs::path& project) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    const support::ProcessResult outcome = assay({"show", "last", "--json"}, project);
    Json shown = Json::parse(outcome.out, nullptr, false);
    if (shown.is_discarded() || !shown.contains("run")) {
      ADD_FAILURE() << "assay show last --json: " << outcome.out << outcome.err;
      return {};
    }
    if (shown["run"]["status"] != "running") return shown;
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the run has not ended within a minute: " << outcome.out;
      return shown;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Recorded recorded(const Json& shown, const fs::path& tree) {
  Recorded all;
  const std::string prefix = tree.string() + "/";
  const auto digest = [](const Json& file) {
    return file["blake3"].is_string() ? file["blake3"].get<std::string>() : std::string("none");
  };
  for (const Json& file : shown["inputs"]) {
    const auto path = file["path"].get<std::string>();
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    EXPECT_TRUE(all.lineage.inputs.insert(name).second) << "input twice: " << name;
    all.input_digests[name] = digest(file);
  }
  for (const Json& file : shown["outputs"]) {
    const auto path = file["path"].get<std::string>();
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    EXPECT_FALSE(all.lineage.outputs.contains(name)) << "output twice: " << name;
    all.lineage.outputs[name] = file["status"].get<std::string>();
    all.output_digests[name] = digest(file);
    all.sizes[name] = file["size"].get<std::int64_t>();
    if (file["before"].is_string()) all.before_digests[name] = file["before"].get<std::string>();
  }
  return all;
}

void expect_digests(const Lineage& expected, const Recorded& got, const fs::path& pristine,
                    const fs::path& tree) {
  std::vector<std::string> inputs;
  for (const std::string& path : expected.inputs) {
    if (got.input_digests.contains(in_json(path))) inputs.push_back(path);
  }
  const auto read = b3sum(pristine, inputs);
  EXPECT_EQ(read.size(), inputs.size());
  for (const auto& [path, digest] : read) {
    EXPECT_EQ(got.input_digests.at(in_json(path)), digest)
        << "content of input " << path << " as it was read";
  }
  std::vector<std::string> outputs;
  for (const auto& [path, status] : expected.outputs) {
    if (status != "deleted" && got.sizes.contains(in_json(path))) outputs.push_back(path);
  }
  const auto left = b3sum(tree, outputs);
  EXPECT_EQ(left.size(), outputs.size());
  for (const auto& [path, digest] : left) {
    EXPECT_EQ(got.output_digests.at(in_json(path)), digest)
        << "content of output " << path << " as it was left";
    EXPECT_EQ(got.sizes.at(in_json(path)), static_cast<std::int64_t>(fs::file_size(tree / path)))
        << path;
  }
}

void expect_befores(const std::vector<std::string>& grows, const Recorded& got,
                    const fs::path& pristine) {
  std::vector<std::string> modified;
  for (const auto& [path, digest] : got.before_digests) {
    // Of a renamed file this is what it held under its former name.
    if (got.lineage.outputs.at(path) == "modified") modified.push_back(path);
  }
  for (const auto& [path, digest] : b3sum(pristine, modified)) {
    EXPECT_EQ(got.before_digests.at(path), digest) << "what output " << path << " held before";
  }
  for (const std::string& path : grows) {
    EXPECT_TRUE(got.before_digests.contains(path)) << path << " does not say what it held before";
  }
}

void expect_same_files(const Lineage& expected, const Lineage& got, bool lacks_are_forgiven) {
  for (const std::string& path : expected.inputs) {
    if (lacks_are_forgiven) break;
    EXPECT_TRUE(got.inputs.contains(in_json(path))) << "input missing: " << path;
  }
  std::set<std::string> known;
  for (const std::string& path : expected.inputs) known.insert(in_json(path));
  for (const std::string& path : got.inputs) {
    EXPECT_TRUE(known.contains(path)) << "input that strace did not see: " << path;
  }
  for (const auto& [path, status] : expected.outputs) {
    const auto found = got.outputs.find(in_json(path));
    if (found == got.outputs.end()) {
      EXPECT_TRUE(lacks_are_forgiven) << "output missing: " << path << " (" << status << ")";
    } else {
      EXPECT_EQ(found->second, status) << "status of output " << path;
    }
  }
  known.clear();
  for (const auto& [path, status] : expected.outputs) known.insert(in_json(path));
  for (const auto& [path, status] : got.outputs) {
    EXPECT_TRUE(known.contains(path))
        << "output that strace did not see: " << path << " (" << status << ")";
  }
}

bool expect_verdict(const Case& which, const std::string& tracer, const Json& shown) {
  bool may_lack = false;
  std::set<std::string> missed;
  for (const Json& entry : shown["missed"]) missed.insert(entry["what"].get<std::string>());
  for (const std::string& what : which.may_miss) may_lack = may_lack || missed.contains(what);
  if (const auto must = which.must_miss.find(tracer); must != which.must_miss.end()) {
    EXPECT_TRUE(missed.contains(must->second)) << "missed[] must say " << must->second;
    EXPECT_FALSE(shown["run"]["complete"].get<bool>());
  } else if (!may_lack) {
    EXPECT_TRUE(shown["run"]["complete"].get<bool>()) << shown["missed"].dump();
    EXPECT_TRUE(missed.empty()) << shown["missed"].dump();
  }
  EXPECT_EQ(shown["run"]["dropped"], 0);
  EXPECT_EQ(shown["run"]["tracer"], tracer);
  EXPECT_GE(shown["processes"].get<int>(), which.least_processes);
  return may_lack;
}

}  // namespace assay::oracle
