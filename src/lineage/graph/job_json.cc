#include "lineage/graph/job_json.h"

#include "base/clock.h"
#include "lineage/graph/dag_view.h"

namespace assay::lineage {
namespace {

using base::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json digest_json(const std::optional<hash::Digest>& digest) {
  return digest ? Json(digest->hex()) : Json(nullptr);
}

Json git_json(const std::optional<store::Git>& git) {
  if (!git) return nullptr;
  return {{"root", git->root},        {"commit", git->commit}, {"branch", git->branch},
          {"remote", git->remote},    {"dirty", git->dirty},   {"diff", git->diff},
          {"left_out", git->left_out}};
}

Json process_json(const store::Process& process) {
  return {{"pid", process.pid},
          {"parent", process.parent},
          {"program", process.program},
          {"words", process.words},
          {"started_ns", process.started_ns},
          {"ended_ns", or_null(process.ended_ns)},
          {"wait_status", or_null(process.wait_status)}};
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
  document["shares"] = array_of(work.shares, [](const store::GpuShare& share) {
    return Json{{"device", share.device.empty() ? Json(nullptr) : Json(share.device)},
                {"memory_bytes", or_null(share.memory_bytes)},
                {"share_thousandths", or_null(share.share_thousandths)},
                {"priority", share.priority},
                {"borrow", share.borrow},
                {"had_ns", share.had_ns},
                {"waited_ns", share.waited_ns}};
  });
  document["collectives"] = array_of(work.collectives, [](const store::GpuCollective& row) {
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

Json job_head_json(const store::Job& job) {
  return {{"id", job.id},
          {"uid", job.uid},
          {"command", command_text(job)},
          {"words", job.command},
          {"directory", job.directory},
          {"redirects", job.redirects},
          {"name", job.name},
          {"labels", job.labels},
          {"build", job.build},
          {"status", store::name_of(job.status)},
          {"exit_code", or_null(job.exit_code)},
          {"signal", or_null(job.signal)},
          {"step", job.step == 0 ? Json(nullptr) : Json(job.step)},
          {"superseded", job.superseded},
          {"tracer", job.tracer},
          {"complete", job.complete},
          {"dropped", job.dropped},
          {"started_at", base::utc_millis_text(job.started_unix_ns)},
          {"duration_s", job.duration_s},
          {"inputs", job.input_count},
          {"outputs", job.output_count},
          {"processes", job.process_count}};
}

Json job_json(const store::Job& job) {
  Json document = {{"job", job_head_json(job)}};
  document["inputs"] = array_of(job.inputs, [](const store::Input& input) {
    return Json{{"path", input.path}, {"blake3", digest_json(input.blake3)}, {"size", input.size}};
  });
  document["outputs"] = array_of(job.outputs, [](const store::Output& output) {
    return Json{{"path", output.path},
                {"blake3", digest_json(output.blake3)},
                {"size", output.size},
                {"status", store::name_of(output.status)},
                {"from", output.from.empty() ? Json(nullptr) : Json(output.from)},
                {"before", digest_json(output.before)}};
  });
  document["processes"] = job.process_count;
  document["missed"] = array_of(job.missed, [](const store::Missed& missed) {
    return Json{{"what", missed.what}, {"text", missed.text}};
  });
  document["process_tree"] = array_of(job.processes, process_json);
  document["rules"] = array_of(job.rules, [](const store::FileRule& rule) {
    return Json{{"name", rule.name},
                {"keep", rule.keep},
                {"because", rule.sentence},
                {"files", rule.files},
                {"paths", rule.paths}};
  });
  document["usage"] = {{"user_s", job.usage.user_s},
                       {"system_s", job.usage.system_s},
                       {"max_rss_bytes", job.usage.max_rss_bytes},
                       {"read_bytes", job.usage.read_bytes},
                       {"written_bytes", job.usage.written_bytes}};
  document["gpu"] = gpu_json(job.gpu);
  document["context"] = {{"user", job.context.user},
                         {"host", job.context.host},
                         {"environment", job.context.environment},
                         {"machine", job.context.machine}};
  document["git"] = git_json(job.context.git);
  document["packages"] = array_of(job.context.packages, [](const store::Package& package) {
    return Json{{"manager", package.manager}, {"name", package.name}, {"version", package.version}};
  });
  return document;
}

}  // namespace assay::lineage
