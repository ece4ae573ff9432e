#include "lineage/graph/run_json.h"

#include "base/clock.h"
#include "lineage/graph/dag_view.h"
#include "lineage/packages/interpreter.h"

namespace assay::lineage {
namespace {

using base::Json;

Json digest_json(const std::optional<hash::Digest>& digest) {
  return digest ? Json(digest->hex()) : Json(nullptr);
}

Json git_json(const std::optional<store::Git>& git) {
  if (!git) return nullptr;
  return {{"root", git->root},        {"commit", git->commit}, {"branch", git->branch},
          {"remote", git->remote},    {"dirty", git->dirty},   {"diff", git->diff},
          {"left_out", git->left_out}};
}

Json process_json(const store::ProcessRecord& process) {
  Json json{{"pid", process.pid},
            {"parent", process.parent},
            {"program", process.program},
            {"arguments", process.arguments},
            {"started_ns", process.started_ns},
            {"ended_ns", base::or_null(process.ended_ns)},
            {"wait_status", base::or_null(process.wait_status)}};
  if (!process.host.empty()) json["host"] = process.host;
  return json;
}

template <class List, class Make>
Json array_of(const List& list, Make make) {
  Json array = Json::array();
  for (const auto& one : list) array.push_back(make(one));
  return array;
}

Json gpu_json(const store::GpuWork& work) {
  Json document = Json::object();
  document["use"] = array_of(work.use, [](const store::GpuUse& use) {
    return Json{{"quantity", use.quantity}, {"calls", use.calls}, {"amount", use.amount}};
  });
  document["memory"] = array_of(work.memory, [](const store::GpuMemory& memory) {
    return Json{{"device", memory.device}, {"peak_bytes", memory.peak_bytes}};
  });
  document["shares"] = array_of(work.shares, [](const store::GpuShareUse& share) {
    return Json{{"device", base::or_null(share.device)},
                {"memory_bytes", base::or_null(share.memory_bytes)},
                {"share_thousandths", base::or_null(share.share_thousandths)},
                {"priority", share.priority},
                {"borrow", share.borrow},
                {"busy_ns", share.busy_ns},
                {"waited_ns", share.waited_ns}};
  });
  document["collectives"] = array_of(work.collectives, [](const store::GpuCollectiveUse& row) {
    return Json{{"communicator", row.communicator},
                {"ranks", row.ranks},
                {"operation", row.operation},
                {"type", row.type},
                {"calls", row.calls},
                {"bytes", row.bytes}};
  });
  return document;
}

}  // namespace

Json run_head_json(const store::RunRecord& run) {
  // Of an interrupted run only the time until the last event in its log is known, of one that still
  // runs nothing.
  const bool known =
      run.status != store::RunStatus::kInterrupted && run.status != store::RunStatus::kRunning;
  return {{"id", run.id},
          {"uid", run.uid},
          {"command", recorded_command_text(run)},
          {"arguments", run.command},
          {"directory", run.directory},
          {"redirects", run.redirects},
          {"name", run.name},
          {"labels", run.labels},
          {"build", run.build},
          {"status", store::name_of(run.status)},
          {"exit_code", base::or_null(run.exit_code)},
          {"signal", base::or_null(run.signal)},
          {"stage", run.stage == 0 ? Json(nullptr) : Json(run.stage)},
          {"superseded", run.superseded},
          {"tracer", run.tracer},
          {"complete", run.complete},
          {"dropped", run.dropped},
          {"started_at", base::utc_millis_text(run.started_unix_ns)},
          {"duration_s", known || run.duration_s > 0 ? Json(run.duration_s) : Json()},
          {"duration_known", known},
          {"inputs", run.input_count},
          {"outputs", run.output_count},
          {"processes", run.process_count}};
}

Json run_json(const store::RunRecord& run) {
  Json document = {{"run", run_head_json(run)}};
  document["inputs"] = array_of(run.inputs, [](const store::Input& input) {
    return Json{{"path", input.path}, {"blake3", digest_json(input.blake3)}, {"size", input.size}};
  });
  document["links"] = base::Json::array();
  document["network"] = base::Json::array();
  document["traffic"] = base::Json::array();
  document["interpreters"] = base::Json::array();
  for (const store::PathFact& fact : run.facts) {
    if (fact.kind == store::PathFact::Kind::kNetwork) document["network"].push_back(fact.path);
    if (const auto bytes = traffic_of(fact)) {
      document["traffic"].push_back({{"address", fact.path},
                                     {"received_bytes", bytes->received},
                                     {"sent_bytes", bytes->sent}});
    }
    if (const auto one = interpreter_of(fact)) {
      document["interpreters"].push_back({{"started", one->started},
                                          {"path", one->real},
                                          {"language", one->language},
                                          {"version", one->version},
                                          {"build", one->build}});
    }
    const bool made = fact.kind == store::PathFact::Kind::kMadeLink;
    if (!made && fact.kind != store::PathFact::Kind::kFollowedLink) continue;
    document["links"].push_back({{"path", fact.path}, {"target", fact.target}, {"made", made}});
  }
  document["outputs"] = array_of(run.outputs, [](const store::Output& output) {
    return Json{{"path", output.path},
                {"blake3", digest_json(output.blake3)},
                {"size", output.size},
                {"status", store::name_of(output.status)},
                {"from", base::or_null(output.from)},
                {"before", digest_json(output.before)}};
  });
  document["processes"] = run.process_count;
  document["missed"] = array_of(run.missed, [](const store::Missed& missed) {
    return Json{{"what", missed.what}, {"text", missed.text}};
  });
  document["process_tree"] = array_of(run.processes, process_json);
  document["rules"] = array_of(run.rules, [](const store::FileRule& rule) {
    return Json{{"name", rule.name},
                {"keep", rule.keep},
                {"because", rule.sentence},
                {"files", rule.files},
                {"paths", rule.paths}};
  });
  document["usage"] = {{"user_s", run.usage.user_s},
                       {"system_s", run.usage.system_s},
                       {"max_rss_bytes", run.usage.max_rss_bytes},
                       {"read_bytes", run.usage.read_bytes},
                       {"written_bytes", run.usage.written_bytes}};
  document["gpu"] = gpu_json(run.gpu);
  document["context"] = {{"user", run.context.user},
                         {"host", run.context.host},
                         {"environment", run.context.environment},
                         {"machine", run.context.machine}};
  document["git"] = git_json(run.context.git);
  document["packages"] = array_of(run.context.packages, [](const store::Package& package) {
    return Json{{"manager", package.manager}, {"name", package.name}, {"version", package.version}};
  });
  return document;
}

base::Json dag_json(const Dag& dag) {
  Json runs = Json::array();
  for (const DagRun& one : dag.runs) {
    Json inputs = Json::array();
    Json outputs = Json::array();
    for (const DagInput& input : one.inputs) {
      inputs.push_back(
          {{"file", input.file}, {"stale", input.stale}, {"written_into", input.written_into}});
    }
    for (const std::size_t file : one.outputs) outputs.push_back({{"file", file}});
    const store::RunRecord& run = one.run;
    runs.push_back({{"id", run.id},
                    {"uid", run.uid},
                    {"stage", run.stage == 0 ? Json(nullptr) : Json(run.stage)},
                    {"superseded", run.superseded},
                    {"command", recorded_command_text(run)},
                    {"directory", run.directory},
                    {"status", store::name_of(run.status)},
                    {"inputs", std::move(inputs)},
                    {"outputs", std::move(outputs)}});
  }
  Json files = Json::array();
  for (const DagFile& file : dag.files) {
    Json consumers = Json::array();
    for (const std::size_t run : file.consumers) consumers.push_back(dag.runs[run].run.id);
    files.push_back(
        {{"path", file.path},
         {"blake3", digest_json(file.blake3)},
         {"size", file.size < 0 ? Json(nullptr) : Json(file.size)},
         {"deleted", file.deleted},
         {"files", file.files == 0 ? Json() : Json(file.files)},
         {"origin", base::or_null(file.origin)},
         {"same_content", file.same_content ? Json{{"run", file.same_content->run},
                                                   {"path", file.same_content->path}}
                                            : Json(nullptr)},
         {"producer", file.producer ? Json(dag.runs[*file.producer].run.id) : Json(nullptr)},
         {"consumers", std::move(consumers)}});
  }
  return {{"runs", std::move(runs)}, {"files", std::move(files)}};
}

}  // namespace assay::lineage
