// Plans as JSON, both ways.
#include "base/error.h"
#include "plan/plan.h"
#include "spec/enum_names.h"

namespace assay::plan {
namespace {

using base::Json;
using base::Result;

struct MemoryPart {
  const char* key;
  base::Bytes MemoryNeed::*bytes;
};
constexpr MemoryPart kMemoryParts[] = {
    {"parameters", &MemoryNeed::parameters}, {"gradients", &MemoryNeed::gradients},
    {"optimizer", &MemoryNeed::optimizer},   {"activations", &MemoryNeed::activations},
    {"gathered", &MemoryNeed::gathered},     {"workspace", &MemoryNeed::workspace},
};

void add_step(const PlannedStep& step, Json& json) {
  json["step_s"] = step.time.total.count();
  json["step_low_s"] = step.low().count();
  json["step_high_s"] = step.high().count();  // null: there is no comparable row
  json["interval"] = {{"low", step.interval.low}, {"high", step.interval.high}};
  json["comparable_rows"] = step.interval.rows;
  json["comparable"] = step.comparable;
  json["extrapolations"] = step.extrapolations;
  json["tokens_per_s"] = step.tokens_per_s;
  json["mfu"] = {{"published", step.mfu_with_embedding}, {"current", step.mfu}};
  json["clock"] = step.time.clock;
  for (const StepPart& part : step_parts()) {
    json["breakdown"][std::string(part.key)] = (step.time.*part.time).count();
  }
}

Json memory_json(const PlannedMemory& memory) {
  Json json{{"total", memory.need.total().count()}};
  for (const MemoryPart& part : kMemoryParts) json[part.key] = (memory.need.*part.bytes).count();
  json["stage"] = memory.need.stage;
  json["device"] = memory.device.count();
  json["counted"] = memory.counted;
  json["rank"] = memory.rank;
  return json;
}

struct VolumePart {
  const char* key;
  std::int64_t Volume::*amount;
};
constexpr VolumePart kVolumeParts[] = {{"reduce_scatter", &Volume::reduce_scatter},
                                       {"all_gather", &Volume::all_gather},
                                       {"all_reduce", &Volume::all_reduce},
                                       {"all_to_all", &Volume::all_to_all},
                                       {"send", &Volume::send}};

Json volume_json(const Volume& volume) {
  Json json{{"total", volume.total()}};
  for (const VolumePart& part : kVolumeParts) json[part.key] = volume.*part.amount;
  return json;
}

Json groups_json(const PlannedExchange& exchange) {
  Json rows = Json::array();
  for (const GroupTraffic& group : exchange.groups) {
    rows.push_back({{"group", group.group},
                    {"parameters", group.parameters},
                    {"optimizer", to_text(group.optimizer)},
                    {"dtype", to_text(group.type)},
                    {"gradient_dtype", to_text(group.gradient_type)},
                    {"tensors", group.tensors},
                    {"padded_tensors", group.padded},
                    {"elements_each", group.elements_each},
                    {"elements", group.elements},
                    {"bytes", volume_json(group.bytes())},
                    {"two_byte_bytes", volume_json(group.two_byte_bytes())}});
  }
  return rows;
}

void add_exchange(const PlannedExchange& exchange, Json& json) {
  json["comm"] = {{"counted", exchange.counted},
                  {"not_counted", exchange.not_counted},
                  {"scheme", exchange.scheme},
                  {"rank", exchange.rank},
                  {"stage", exchange.stage},
                  {"bytes", volume_json(exchange.bytes())},
                  {"two_byte_bytes", volume_json(exchange.two_byte_bytes())},
                  {"sent_bytes_per_rank", exchange.sent_bytes}};
  json["comm_groups"] = groups_json(exchange);
  json["collectives"] = to_json(exchange.calls);
}

// Reads the keys of one object, and remembers the first that is missing or of another type.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) wrong_ = "it is not an object";
  }

  [[nodiscard]] bool has(const char* key) const {
    return json_.is_object() && json_.contains(key) && !json_.at(key).is_null();
  }
  Reader object(const char* key) {
    static const Json kEmpty = Json::object();
    if (has(key) && json_.at(key).is_object()) return Reader(json_.at(key));
    refuse(key);
    return Reader(kEmpty);
  }
  void text(const char* key, std::string& value) { read(key, &Json::is_string, value); }
  void number(const char* key, double& value) { read(key, &Json::is_number, value); }
  void count(const char* key, std::int64_t& value) { read(key, &Json::is_number_integer, value); }
  void flag(const char* key, bool& value) { read(key, &Json::is_boolean, value); }
  void seconds(const char* key, base::Seconds& value) {
    double number = 0;
    this->number(key, number);
    value = base::Seconds(number);
  }
  void bytes(const char* key, base::Bytes& value) {
    std::int64_t number = 0;
    count(key, number);
    value = base::Bytes(number);
  }
  void lines(const char* key, std::vector<std::string>& values) {
    if (!has(key) || !json_.at(key).is_array()) return refuse(key);
    for (const Json& line : json_.at(key)) {
      if (!line.is_string()) return refuse(key);
      values.push_back(line.get<std::string>());
    }
  }
  // Of an enumeration whose last value is `last`, by the text of its values.
  template <class E>
  void named(const char* key, E last, E& value) {
    std::string text;
    this->text(key, text);
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (to_text(static_cast<E>(i)) != text) continue;
      value = static_cast<E>(i);
      return;
    }
    refuse(key);
  }
  // An array of objects, each read by `row`.
  template <class Row>
  void rows(const char* key, Row row) {
    if (!has(key) || !json_.at(key).is_array()) return refuse(key);
    for (const Json& one : json_.at(key)) {
      Reader reader(one);
      row(reader);
      take(reader);
    }
  }
  void take(const Reader& inner) {
    if (wrong_.empty()) wrong_ = inner.wrong_;
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  template <class T>
  void read(const char* key, bool (Json::*is_type)() const noexcept, T& value) {
    if (!has(key) || !(json_.at(key).*is_type)()) return refuse(key);
    value = json_.at(key).get<T>();
  }
  void refuse(const char* key) {
    if (wrong_.empty()) wrong_ = std::string("'") + key + "' is missing or of another type";
  }

  const Json& json_;
  std::string wrong_;
};

PlannedStep read_step(Reader& json) {
  PlannedStep step;
  json.seconds("step_s", step.time.total);
  Reader interval = json.object("interval");
  interval.number("low", step.interval.low);
  if (interval.has("high")) interval.number("high", step.interval.high);
  json.take(interval);
  json.count("comparable_rows", step.interval.rows);
  json.text("comparable", step.comparable);
  json.lines("extrapolations", step.extrapolations);
  json.number("tokens_per_s", step.tokens_per_s);
  json.number("clock", step.time.clock);
  Reader mfu = json.object("mfu");
  mfu.number("published", step.mfu_with_embedding);
  mfu.number("current", step.mfu);
  json.take(mfu);
  Reader breakdown = json.object("breakdown");
  for (const StepPart& part : step_parts()) {
    breakdown.seconds(std::string(part.key).c_str(), step.time.*part.time);
  }
  json.take(breakdown);
  return step;
}

PlannedMemory read_memory(Reader json, Reader& outer) {
  PlannedMemory memory;
  for (const MemoryPart& part : kMemoryParts) json.bytes(part.key, memory.need.*part.bytes);
  json.number("stage", memory.need.stage);
  json.bytes("device", memory.device);
  json.flag("counted", memory.counted);
  if (json.has("rank")) json.count("rank", memory.rank);  // not in older plans
  outer.take(json);
  return memory;
}

GroupTraffic read_group(Reader& json) {
  GroupTraffic group;
  json.text("group", group.group);
  json.lines("parameters", group.parameters);
  json.named("optimizer", spec::Optimizer::kMuon, group.optimizer);
  json.named("dtype", step::Dtype::kFp16, group.type);
  group.gradient_type = group.type;  // in older plans, which do not say it
  if (json.has("gradient_dtype")) {
    json.named("gradient_dtype", step::Dtype::kFp16, group.gradient_type);
  }
  json.count("tensors", group.tensors);
  json.count("padded_tensors", group.padded);
  json.count("elements_each", group.elements_each);
  json.count("elements", group.elements);
  Reader bytes = json.object("bytes");
  for (const VolumePart& part : kVolumeParts) bytes.count(part.key, group.volume.*part.amount);
  group.volume = group.elements_of(group.volume);
  json.take(bytes);
  return group;
}

PlannedCalls read_calls(Reader& json) {
  PlannedCalls one;
  json.named("op", step::CollectiveKind::kReceive, one.calls.kind);
  json.named("dtype", step::Dtype::kFp16, one.calls.type);
  json.text("about", one.about);
  json.text("among", one.among);
  json.count("ranks", one.ranks);
  json.count("calls", one.calls.calls);
  json.count("bytes", one.calls.bytes);
  json.count("least_bytes", one.calls.least_bytes);
  json.count("most_bytes", one.calls.most_bytes);
  return one;
}

PlannedExchange read_exchange(Reader& outer) {
  PlannedExchange exchange;
  Reader json = outer.object("comm");
  json.flag("counted", exchange.counted);
  json.text("not_counted", exchange.not_counted);
  json.text("scheme", exchange.scheme);
  json.count("rank", exchange.rank);
  json.count("stage", exchange.stage);
  json.number("sent_bytes_per_rank", exchange.sent_bytes);
  outer.take(json);
  outer.rows("comm_groups", [&](Reader& row) { exchange.groups.push_back(read_group(row)); });
  outer.rows("collectives", [&](Reader& row) { exchange.calls.push_back(read_calls(row)); });
  return exchange;
}

}  // namespace

Json to_json(const std::vector<PlannedCalls>& calls) {
  Json rows = Json::array();
  for (const PlannedCalls& one : calls) {
    rows.push_back({{"op", to_text(one.calls.kind)},
                    {"dtype", to_text(one.calls.type)},
                    {"about", one.about},
                    {"among", one.among},
                    {"ranks", one.ranks},
                    {"calls", one.calls.calls},
                    {"bytes", one.calls.bytes},
                    {"mean_bytes", one.calls.mean_bytes()},
                    {"least_bytes", one.calls.least_bytes},
                    {"most_bytes", one.calls.most_bytes}});
  }
  return rows;
}

Json to_json(const Plan& plan) {
  Json json{{"name", plan.job},
            {"device", plan.device},
            {"framework", plan.framework},
            {"refused", plan.refused},
            {"recompute", plan.recompute},
            {"constants", plan.constants},
            {"ranks", plan.ranks},
            {"tokens_per_step", plan.tokens_per_step}};
  for (const char* key :
       {"step_s", "step_low_s", "step_high_s", "interval", "comparable_rows", "comparable",
        "extrapolations", "tokens_per_s", "mfu", "clock", "breakdown"}) {
    json[key] = nullptr;
  }
  if (plan.step) add_step(*plan.step, json);
  json["memory_bytes"] = plan.memory ? memory_json(*plan.memory) : Json(nullptr);
  json["experts"] = nullptr;
  if (plan.experts) {
    json["experts"] = {{"ranks", plan.experts->ranks},
                       {"imbalance", plan.experts->imbalance},
                       {"is_assumed", plan.experts->is_assumed},
                       {"fullest_rank", plan.experts->fullest_rank}};
  }
  for (const char* key : {"comm", "comm_groups", "collectives"}) json[key] = nullptr;
  if (plan.exchange) add_exchange(*plan.exchange, json);
  json["unknown"] = plan.unknown;
  return json;
}

Result<Plan> plan_from_json(const Json& json) {
  Plan plan;
  Reader reader(json);
  reader.text("name", plan.job);
  reader.text("device", plan.device);
  reader.text("framework", plan.framework);
  if (reader.has("refused")) reader.text("refused", plan.refused);  // since it is written
  reader.text("recompute", plan.recompute);
  reader.text("constants", plan.constants);
  reader.count("ranks", plan.ranks);
  reader.count("tokens_per_step", plan.tokens_per_step);
  if (reader.has("step_s")) plan.step = read_step(reader);
  if (reader.has("memory_bytes")) plan.memory = read_memory(reader.object("memory_bytes"), reader);
  if (reader.has("comm")) plan.exchange = read_exchange(reader);
  if (reader.has("experts")) {  // not in older plans
    PlannedExperts& experts = plan.experts.emplace();
    Reader inner = reader.object("experts");
    inner.count("ranks", experts.ranks);
    inner.number("imbalance", experts.imbalance);
    inner.flag("is_assumed", experts.is_assumed);
    inner.number("fullest_rank", experts.fullest_rank);
    reader.take(inner);
  }
  reader.lines("unknown", plan.unknown);
  if (!reader.wrong().empty()) {
    return base::fail(base::failed_error("plan", "cannot be read: " + reader.wrong()));
  }
  return plan;
}

}  // namespace assay::plan
