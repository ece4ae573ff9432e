// Plans as JSON, both ways.
#include "base/error.h"
#include "plan/plan.h"

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
  return json;
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
  outer.take(json);
  return memory;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json json{{"name", plan.job},
            {"device", plan.device},
            {"framework", plan.framework},
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
  json["unknown"] = plan.unknown;
  return json;
}

Result<Plan> plan_from_json(const Json& json) {
  Plan plan;
  Reader reader(json);
  reader.text("name", plan.job);
  reader.text("device", plan.device);
  reader.text("framework", plan.framework);
  reader.text("recompute", plan.recompute);
  reader.text("constants", plan.constants);
  reader.count("ranks", plan.ranks);
  reader.count("tokens_per_step", plan.tokens_per_step);
  if (reader.has("step_s")) plan.step = read_step(reader);
  if (reader.has("memory_bytes")) plan.memory = read_memory(reader.object("memory_bytes"), reader);
  reader.lines("unknown", plan.unknown);
  if (!reader.wrong().empty()) {
    return base::fail(base::failed_error("plan", "cannot be read: " + reader.wrong()));
  }
  return plan;
}

}  // namespace assay::plan
