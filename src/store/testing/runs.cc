#include "store/testing/runs.h"

#include <fmt/format.h>

#include <atomic>
#include <sstream>

#include "base/check.h"
#include "hash/blake3.h"
#include "store/run_writer.h"

namespace assay::store::testing {
namespace {

std::string absolute(std::string_view directory, std::string_view name) {
  return name.starts_with("/") ? std::string(name) : fmt::format("{}/{}", directory, name);
}

Output output_of(std::string word, std::string_view directory) {
  Output output;
  if (word.front() == '-') {
    output.status = OutputStatus::kDeleted;
    output.path = absolute(directory, word.substr(1));
    return output;
  }
  if (word.front() == '~') output.status = OutputStatus::kModified;
  if (word.front() == '~' || word.front() == '+') word.erase(0, 1);
  const std::size_t equals = word.find('=');
  const std::string content = word.substr(equals + 1);
  std::string name = word.substr(0, equals);
  if (const std::size_t arrow = name.find('>'); arrow != std::string::npos) {
    output.status = OutputStatus::kRenamed;
    output.from = absolute(directory, name.substr(0, arrow));
    name = name.substr(arrow + 1);
  }
  if (const std::size_t held = name.find('<'); held != std::string::npos) {
    output.before = digest_of(name.substr(held + 1));
    name.erase(held);
  }
  output.path = absolute(directory, name);
  output.blake3 = digest_of(content);
  output.size = static_cast<std::int64_t>(content.size());
  return output;
}

}  // namespace

hash::Digest digest_of(std::string_view content) {
  return hash::blake3(std::as_bytes(std::span(content.data(), content.size())));
}

RunRecord run_of(std::string_view description, std::string_view directory) {
  static std::atomic<std::int64_t> made = 0;
  RunRecord run;
  run.directory = directory;
  run.status = RunStatus::kDone;
  run.exit_code = 0;
  run.tracer = "preload";
  run.complete = true;
  // A time in 2026, a minute after the previous run.
  run.started_unix_ns = 1'790'000'000'000'000'000 + ++made * 60'000'000'000;
  run.duration_s = 1.5;
  run.context.user = "ada";
  run.context.host = "engine";
  bool outputs = false;
  std::istringstream words{std::string(description)};
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (word == "->") {
      outputs = true;
    } else if (outputs) {
      run.outputs.push_back(output_of(word, directory));
    } else if (equals != std::string::npos && word.front() != '-') {
      const std::string content = word.substr(equals + 1);
      run.inputs.push_back({absolute(directory, word.substr(0, equals)), digest_of(content),
                            static_cast<std::int64_t>(content.size())});
    } else {
      run.command.push_back(word);
    }
  }
  return run;
}

RunId record(Store& store, std::string_view description, std::string_view directory) {
  const auto id = record_run(store, run_of(description, directory));
  ASSAY_CHECK(id.has_value(), "a test can record a run");
  return *id;
}

}  // namespace assay::store::testing
