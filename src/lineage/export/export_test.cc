// Every format has the required fields of its public schema and no dangling references, and the
// same runs give the same bytes.
#include "lineage/export/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lineage/export/common.h"
#include "lineage/testing/required_fields.h"
#include "lineage/testing/sample_runs.h"

namespace assay::lineage {
namespace {

using base::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FieldRule;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Kind;
using testing::pipeline;
using testing::problems_of;
using testing::subject_of;

// PROV-JSON's JSON schema (W3C submission): what each relation requires.
const std::vector<FieldRule> kProvJson = {
    {"/prefix/*", Kind::kUri},
    {"/entity/*", Kind::kObject},
    {"/activity/*", Kind::kObject},
    {"/activity/*/prov:startTime?", Kind::kTime},
    {"/activity/*/prov:endTime?", Kind::kTime},
    {"/agent/*", Kind::kObject},
    {"/used?/*/prov:activity", Kind::kText},
    {"/used?/*/prov:entity", Kind::kText},
    {"/wasGeneratedBy?/*/prov:entity", Kind::kText},
    {"/wasGeneratedBy?/*/prov:activity", Kind::kText},
    {"/wasGeneratedBy?/*/prov:time", Kind::kTime},
    {"/wasAssociatedWith?/*/prov:activity", Kind::kText},
    {"/wasInformedBy?/*/prov:informed", Kind::kText},
    {"/wasInformedBy?/*/prov:informant", Kind::kText},
    {"/specializationOf?/*/prov:specificEntity", Kind::kText},
    {"/specializationOf?/*/prov:generalEntity", Kind::kText},
};

// RO-Crate 1.1, "Root Data Entity" and "Data Entities".
const std::vector<FieldRule> kRoCrate = {
    {"/@context", Kind::kArray},
    {"/@graph/*/@id", Kind::kText},
    {"/@graph/*/@type", Kind::kText},
};
const std::vector<FieldRule> kRoCrateRoot = {
    {"/name", Kind::kText},    {"/description", Kind::kText},   {"/datePublished", Kind::kTime},
    {"/license", Kind::kText}, {"/conformsTo/@id", Kind::kUri}, {"/hasPart/*/@id", Kind::kText},
};
// Process Run Crate 0.5, "Requirements".
const std::vector<FieldRule> kProcessRunAction = {
    {"/@id", Kind::kUri},
    {"/instrument/@id", Kind::kText},
    {"/name", Kind::kText},
    {"/description", Kind::kText},
    {"/endTime", Kind::kTime},
    {"/agent?/@id", Kind::kText},
    {"/object?/*/@id", Kind::kText},
    {"/result?/*/@id", Kind::kText},
    {"/actionStatus", Kind::kUri},
};

// in-toto Statement v1 and SLSA Provenance v1.
const std::vector<FieldRule> kInToto = {
    {"/_type", Kind::kUri},
    {"/subject", Kind::kArray},
    {"/subject/*/name", Kind::kText},
    {"/subject/*/digest/*", Kind::kHex},
    {"/predicateType", Kind::kUri},
    {"/predicate/buildDefinition/buildType", Kind::kUri},
    {"/predicate/buildDefinition/externalParameters", Kind::kObject},
    {"/predicate/buildDefinition/internalParameters?", Kind::kObject},
    {"/predicate/buildDefinition/resolvedDependencies/*/uri", Kind::kUri},
    {"/predicate/buildDefinition/resolvedDependencies/*/digest?/*", Kind::kHex},
    {"/predicate/runDetails/builder/id", Kind::kUri},
    {"/predicate/runDetails/builder/version?/*", Kind::kText},
    {"/predicate/runDetails/metadata/invocationId?", Kind::kText},
    {"/predicate/runDetails/metadata/startedOn?", Kind::kTime},
    {"/predicate/runDetails/metadata/finishedOn?", Kind::kTime},
};

// OpenLineage.json 2-0-2, RunEvent, and the facets' own schemas.
const std::vector<FieldRule> kOpenLineage = {
    {"/eventTime", Kind::kTime},
    {"/producer", Kind::kUri},
    {"/schemaURL", Kind::kUri},
    {"/run/runId", Kind::kUuid},
    {"/run/facets?/*/_producer", Kind::kUri},
    {"/run/facets?/*/_schemaURL", Kind::kUri},
    {"/run/facets/processing_engine/version", Kind::kText},
    {"/run/facets/errorMessage?/message", Kind::kText},
    {"/run/facets/errorMessage?/programmingLanguage", Kind::kText},
    {"/job/namespace", Kind::kText},
    {"/job/name", Kind::kText},
    {"/job/facets?/*/_producer", Kind::kUri},
    {"/job/facets?/*/_schemaURL", Kind::kUri},
    {"/job/facets/jobType/processingType", Kind::kText},
    {"/job/facets/jobType/integration", Kind::kText},
    {"/job/facets/documentation/description", Kind::kText},
    {"/job/facets/sourceCodeLocation?/type", Kind::kText},
    {"/job/facets/sourceCodeLocation?/url", Kind::kUri},
    {"/inputs/*/namespace", Kind::kText},
    {"/inputs/*/name", Kind::kText},
    {"/inputs/*/facets/*/_producer", Kind::kUri},
    {"/inputs/*/facets/*/_schemaURL", Kind::kUri},
    {"/inputs/*/facets/version?/datasetVersion", Kind::kText},
    {"/outputs/*/namespace", Kind::kText},
    {"/outputs/*/name", Kind::kText},
    {"/outputs/*/facets/*/_producer", Kind::kUri},
    {"/outputs/*/facets/*/_schemaURL", Kind::kUri},
    {"/outputs/*/facets/lifecycleStateChange/lifecycleStateChange", Kind::kText},
};

// Odd and unfinished runs, for all formats.
std::vector<std::vector<store::RunRecord>> unusual_subjects() {
  store::RunRecord failed = testing::run(3, {"false"});
  failed.status = store::RunStatus::kFailed;
  failed.exit_code = 1;
  failed.stage = 0;
  store::RunRecord killed = testing::run(4, {"x"});
  killed.status = store::RunStatus::kInterrupted;
  killed.context = {};
  store::RunRecord running = testing::run(5, {"sleep", "9"});
  running.status = store::RunStatus::kRunning;
  store::RunRecord strange = testing::run(6, {"sh", "-c", "bad \xff byte\n"});
  strange.inputs = {testing::input("/project/a:b/\xff \"%#?", "1"), {"/project/unread", {}, 0}};
  strange.outputs = {testing::output("/project/x", "2", store::OutputStatus::kRenamed),
                     {"/project/gone", {}, 0, store::OutputStatus::kDeleted, ""},
                     {"/project/unhashed", {}, 3, store::OutputStatus::kModified, ""}};
  strange.outputs[0].from = "/project/y";
  strange.context.git = store::Git{.root = "/project", .remote = "git@example.org:p.git"};
  strange.missed = {{"io_uring", "process 3 uses io_uring"}};
  return {{failed}, {killed}, {running}, {strange}, pipeline(), {failed, strange}};
}

TEST(Export, ProvHasItsRequiredFields) {
  for (const auto& runs : unusual_subjects()) {
    const Json document = Json::parse(*export_text(ExportFormat::kProv, subject_of(runs)));
    if (runs[0].status == store::RunStatus::kRunning) continue;
    EXPECT_THAT(problems_of(document, kProvJson), IsEmpty());
    const std::set<std::string> allowed = {"prefix",
                                           "entity",
                                           "activity",
                                           "agent",
                                           "wasGeneratedBy",
                                           "used",
                                           "wasInformedBy",
                                           "wasStartedBy",
                                           "wasEndedBy",
                                           "wasInvalidatedBy",
                                           "wasDerivedFrom",
                                           "wasAttributedTo",
                                           "wasAssociatedWith",
                                           "actedOnBehalfOf",
                                           "specializationOf",
                                           "bundle"};
    for (const auto& item : document.items()) EXPECT_THAT(allowed, Contains(item.key()));
    // Attribute values are literals or lists of them, and names have a known prefix.
    for (const char* kind : {"entity", "activity", "agent"}) {
      for (const auto& thing : document[kind].items()) {
        const std::string prefix = thing.key().substr(0, thing.key().find(':'));
        EXPECT_TRUE(document["prefix"].contains(prefix)) << thing.key();
        for (const auto& attribute : thing.value().items()) {
          EXPECT_TRUE(attribute.value().is_primitive() || attribute.value().contains("$"));
          EXPECT_FALSE(attribute.value().is_null()) << attribute.key();
        }
      }
    }
    for (const char* relation : {"used", "wasGeneratedBy"}) {
      if (!document.contains(relation)) continue;
      for (const auto& one : document[relation].items()) {
        EXPECT_TRUE(document["entity"].contains(one.value()["prov:entity"].get<std::string>()));
        EXPECT_TRUE(document["activity"].contains(one.value()["prov:activity"].get<std::string>()));
      }
    }
  }
}

TEST(Export, ProvDescribesThePipeline) {
  const Json document = export_prov(subject_of(pipeline()));
  // Two from outside; three made here, each as what its run left and as the content there.
  const std::string clean = fmt::format("file:{}-{}/project/clean.csv",
                                        testing::digest_of("clean").hex(), pipeline()[0].uid);
  EXPECT_EQ(document["entity"].size(), 8U);
  EXPECT_EQ(document["entity"][clean]["prov:location"], "/project/clean.csv");
  EXPECT_EQ(document["used"].size(), 3U);
  EXPECT_EQ(document["wasGeneratedBy"].size(), 3U);
  ASSERT_EQ(document["wasInformedBy"].size(), 1U);
  EXPECT_EQ(document["wasInformedBy"]["_:informed1"]["prov:informed"], "run:" + pipeline()[1].uid);
  EXPECT_EQ(document["activity"]["run:" + pipeline()[0].uid]["assay:command"],
            "python3 prepare.py 'two words'");
}

TEST(Export, ProvKeepsACopyApartFromWhatItWasMadeOf) {
  store::RunRecord copy = testing::run(1, {"cp", "a", "b"});
  copy.inputs = {testing::input("/project/a", "x")};
  copy.outputs = {testing::output("/project/b", "x")};
  store::RunRecord other = testing::run(2, {"cat", "c"});  // equal, and made by no run
  other.inputs = {testing::input("/project/c", "x")};
  const Json document = export_prov(subject_of({copy, other}));
  EXPECT_EQ(document["entity"].size(), 4U);
  EXPECT_NE(document["used"]["_:used1"]["prov:entity"],
            document["wasGeneratedBy"]["_:generated1"]["prov:entity"]);
  EXPECT_FALSE(document.contains("wasInformedBy"));
  EXPECT_EQ(document["agent"]["agent:ann%40node1"]["prov:type"],
            Json({{"$", "prov:Person"}, {"type", "prov:QUALIFIED_NAME"}}));
}

TEST(Export, RoCrateHasItsRequiredFields) {
  for (const auto& runs : unusual_subjects()) {
    const Json document = Json::parse(*export_text(ExportFormat::kRoCrate, subject_of(runs)));
    EXPECT_THAT(problems_of(document, kRoCrate), IsEmpty());
    std::map<std::string, Json> by_id;
    for (const Json& entity : document["@graph"]) {
      EXPECT_TRUE(by_id.emplace(entity["@id"], entity).second) << "twice: " << entity["@id"];
    }
    ASSERT_TRUE(by_id.contains("ro-crate-metadata.json"));
    EXPECT_EQ(by_id["ro-crate-metadata.json"]["about"]["@id"], "./");
    EXPECT_EQ(by_id["ro-crate-metadata.json"]["conformsTo"]["@id"],
              "https://w3id.org/ro/crate/1.1");
    EXPECT_THAT(problems_of(by_id["./"], kRoCrateRoot), IsEmpty());
    std::set<std::string> parts;
    for (const Json& part : by_id["./"]["hasPart"]) parts.insert(part["@id"]);
    std::size_t actions = 0;
    for (const auto& [id, entity] : by_id) {
      const auto type = entity["@type"].get<std::string>();
      if (type == "File") {
        EXPECT_THAT(parts, Contains(id));  // every file must be reachable from the root
        EXPECT_TRUE(testing::is_of_kind("x:" + id, Kind::kUri)) << id;
      }
      if (!type.ends_with("Action")) continue;
      ++actions;
      if (entity["actionStatus"] != "http://schema.org/ActiveActionStatus") {
        EXPECT_THAT(problems_of(entity, kProcessRunAction), IsEmpty());
      }
      for (const char* role : {"instrument", "agent"}) {
        if (entity.contains(role)) {
          EXPECT_TRUE(by_id.contains(entity[role]["@id"])) << role;
        }
      }
      for (const char* role : {"object", "result"}) {
        if (!entity.contains(role)) continue;
        for (const Json& file : entity[role]) EXPECT_TRUE(by_id.contains(file["@id"]));
      }
    }
    EXPECT_EQ(actions, runs.size());
  }
}

TEST(Export, RoCrateKeepsContentsOfOnePathApart) {
  store::RunRecord first = testing::run(1, {"a"});
  first.outputs = {testing::output("/project/x", "old")};
  store::RunRecord second = testing::run(2, {"b"});
  second.inputs = {testing::input("/project/x", "old")};
  second.outputs = {testing::output("/project/x", "new", store::OutputStatus::kModified)};
  const Json document = export_ro_crate(subject_of({first, second}));
  std::map<std::string, std::string> contents;
  for (const Json& entity : document["@graph"]) {
    if (entity["@type"] == "File") contents[entity["@id"]] = entity["identifier"];
  }
  EXPECT_EQ(contents["x"], "urn:blake3:" + testing::digest_of("new").hex());
  const std::string old = "urn:blake3:" + testing::digest_of("old").hex();
  EXPECT_EQ(contents[old], old);
}

TEST(Export, InTotoHasItsRequiredFields) {
  for (const auto& runs : unusual_subjects()) {
    const auto text = export_text(ExportFormat::kInToto, subject_of(runs));
    const bool has_file =
        std::any_of(runs.back().outputs.begin(), runs.back().outputs.end(),
                    [](const store::Output& o) { return o.blake3.has_value() && exists_after(o); });
    ASSERT_EQ(text.has_value(), has_file);
    if (!text) {
      EXPECT_THAT(text.error().line(), HasSubstr("has no output"));
      continue;
    }
    const Json document = Json::parse(*text);
    EXPECT_THAT(problems_of(document, kInToto), IsEmpty()) << *text;
    EXPECT_EQ(document["_type"], "https://in-toto.io/Statement/v1");
    EXPECT_EQ(document["predicateType"], "https://slsa.dev/provenance/v1");
    EXPECT_FALSE(document["subject"].empty());
  }
}

TEST(Export, InTotoIsAboutTheArtifactAskedFor) {
  ExportSubject subject = subject_of(pipeline());
  EXPECT_EQ((*export_in_toto(subject))["subject"].size(), 2U);
  subject.artifact_path = "/project/model.bin";
  const Json document = *export_in_toto(subject);
  ASSERT_EQ(document["subject"].size(), 1U);
  EXPECT_EQ(document["subject"][0]["digest"]["blake3"], testing::digest_of("model").hex());

  subject.runs.pop_back();
  subject.artifact_path.clear();
  const Json first = (*export_in_toto(subject))["predicate"]["buildDefinition"];
  std::vector<std::string> uris;
  for (const Json& one : first["resolvedDependencies"]) uris.push_back(one["uri"]);
  EXPECT_THAT(uris, ElementsAre("git+https://example.org/p.git", "file:///data/raw%20%C3%A4.csv",
                                "file:///project/prepare.py",
                                "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1", "pkg:pypi/numpy@1.26.4"));
}

TEST(Export, OpenLineageHasItsRequiredFields) {
  for (const auto& runs : unusual_subjects()) {
    const std::string text = *export_text(ExportFormat::kOpenLineage, subject_of(runs));
    std::istringstream lines(text);
    std::map<std::string, std::vector<std::string>> types;
    std::string last_time;
    for (std::string line; std::getline(lines, line);) {
      const Json event = Json::parse(line);
      EXPECT_THAT(problems_of(event, kOpenLineage), IsEmpty()) << line;
      types[event["run"]["runId"]].push_back(event["eventType"]);
      EXPECT_LE(last_time, event["eventTime"].get<std::string>());
      last_time = event["eventTime"];
    }
    ASSERT_EQ(types.size(), runs.size());
    for (const store::RunRecord& run : runs) {
      const auto& sent = types[uuid_of(run)];
      ASSERT_FALSE(sent.empty());
      EXPECT_EQ(sent[0], "START");
      const bool running = run.status == store::RunStatus::kRunning;
      ASSERT_EQ(sent.size(), running ? 1U : 2U);
      const std::map<store::RunStatus, std::string> expected = {
          {store::RunStatus::kDone, "COMPLETE"},
          {store::RunStatus::kFailed, "FAIL"},
          {store::RunStatus::kInterrupted, "ABORT"}};
      if (!running) {
        EXPECT_EQ(sent[1], expected.at(run.status));
      }
    }
  }
}

TEST(Export, SameRunsSameBytes) {
  for (const std::string& name : export_format_names()) {
    const ExportFormat format = *parse_export_format(name);
    EXPECT_EQ(*export_text(format, subject_of(pipeline())),
              *export_text(format, subject_of(pipeline())));
  }
  EXPECT_NE(uuid_of(pipeline()[0]), uuid_of(pipeline()[1]));
}

TEST(Export, UnknownFormat) {
  EXPECT_THAT(parse_export_format("rocrate").error().line(),
              HasSubstr("unknown format 'rocrate'; did you mean 'ro-crate'?"));
}

TEST(Export, Uris) {
  EXPECT_EQ(file_uri("/a b/%\xff?#"), "file:///a%20b/%25%FF%3F%23");
  EXPECT_EQ(crate_uri("/p/a b", "/p"), "a%20b");
  EXPECT_EQ(crate_uri("/p/a:b/c", "/p"), "./a:b/c");
  EXPECT_EQ(crate_uri("/p/a/b:c", "/p"), "a/b:c");
  EXPECT_EQ(crate_uri("/pq/a", "/p"), "file:///pq/a");
  EXPECT_EQ(crate_uri("/p", "/p"), "file:///p");
}

// The checker itself notices what is missing.
TEST(RequiredFields, NoticesWhatIsMissing) {
  Json event = export_openlineage(subject_of(pipeline()))[1];
  ASSERT_THAT(problems_of(event, kOpenLineage), IsEmpty());
  event["run"].erase("runId");
  event["eventTime"] = "yesterday";
  event["inputs"][0]["facets"]["version"].erase("_producer");
  EXPECT_EQ(problems_of(event, kOpenLineage).size(), 3U);
}

}  // namespace
}  // namespace assay::lineage
