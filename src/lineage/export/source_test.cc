// Source, packages and outcome of a run in all formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lineage/export/common.h"
#include "lineage/export/export.h"
#include "lineage/testing/required_fields.h"
#include "lineage/testing/sample_runs.h"

namespace assay::lineage {
namespace {

using base::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::output;
using testing::subject_of;

store::RunRecord from_remote(const std::string& remote) {
  store::RunRecord run = testing::run(1, {"make"});
  run.outputs = {output("/project/x", "x")};
  run.context.git = store::Git{
      .root = "/pro ject/sub", .commit = std::string(40, 'a'), .branch = "main", .remote = remote};
  return run;
}

TEST(ExportSource, RemotesAreUris) {
  for (const auto& [remote, uri] : std::vector<std::pair<std::string, std::string>>{
           {"", "file:///pro%20ject/sub"},
           {"https://example.org/p.git", "https://example.org/p.git"},
           {"https://example.org/a b/\xc3\xa4%20%zz?x#y[1]",
            "https://example.org/a%20b/%C3%A4%20%25zz?x#y%5B1%5D"},
           {"ssh://git@[::1]:22/p", "ssh://git@[::1]:22/p"},
           {"git@example.org:p q.git", "ssh://git@example.org/p%20q.git"},
           {"example.org:/srv/p.git", "ssh://example.org/srv/p.git"},
           {"git@[::1]:p.git", "ssh://git@[::1]/p.git"},
           {"example.org:", "ssh://example.org/"},
           {"ext::sh -c x", "ext::sh%20-c%20x"},
           {"/srv/a b.git", "file:///srv/a%20b.git"},
           {"../other.git", "file:///pro%20ject/other.git"},
           {"./a:b", "file:///pro%20ject/sub/a:b"},
           {"bare", "file:///pro%20ject/sub/bare"}}) {
    const store::RunRecord run = from_remote(remote);
    EXPECT_EQ(source_uri(*run.context.git), uri) << remote;
    EXPECT_TRUE(testing::is_of_kind(uri, testing::Kind::kUri)) << uri;
    const Json statement = *export_in_toto(subject_of({run}));
    EXPECT_EQ(statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]["uri"],
              "git+" + uri);
    const Json facets = export_openlineage(subject_of({run}))[0]["job"]["facets"];
    ASSERT_EQ(facets.contains("sourceCodeLocation"), !remote.empty());
    if (remote.empty()) continue;
    EXPECT_EQ(facets["sourceCodeLocation"]["url"], uri);
  }
}

// The recorder strips credentials; those in an old store are not exported either.
TEST(ExportSource, NoFormatHasThePasswordOfARemote) {
  for (const char* remote :
       {"https://ann:hunter2@example.org/p.git", "https://hunter2@example.org/p",
        "https://ann:hun/ter2@example.org/p.git", "ssh://ann:hunter2@example.org/p",
        "http://ann:@hunter2@h:80/p"}) {
    for (const std::string& format : export_format_names()) {
      EXPECT_THAT(*export_text(*parse_export_format(format), subject_of({from_remote(remote)})),
                  Not(HasSubstr("ter2")))
          << format << " " << remote;
    }
  }
}

TEST(ExportSource, PackagesHaveOneSpelling) {
  store::RunRecord run = testing::run(1, {"make"});
  run.outputs = {output("/project/x", "x")};
  run.context.packages = {{"dpkg", "libc6", "1:2.36-9+deb12u1~x"},
                          {"pip", "Typing_Extensions", "4.0"},
                          {"conda", "A_b", "1!2"}};
  const Json statement = *export_in_toto(subject_of({run}));
  std::vector<std::string> uris;
  for (const Json& one : statement["predicate"]["buildDefinition"]["resolvedDependencies"]) {
    uris.push_back(one["uri"]);
  }
  EXPECT_THAT(uris, ElementsAre("pkg:deb/debian/libc6@1:2.36-9%2Bdeb12u1~x",
                                "pkg:pypi/typing-extensions@4.0", "pkg:conda/A_b@1%212"));
}

TEST(ExportSource, InTotoHasTheRunsOutcome) {
  const auto parameters = [](store::RunRecord run) {
    run.outputs = {output("/project/x", "x")};
    return (
        *export_in_toto(subject_of({run})))["predicate"]["buildDefinition"]["internalParameters"];
  };
  store::RunRecord failed = testing::run(1, {"false"});
  failed.status = store::RunStatus::kFailed;
  failed.exit_code = 3;
  EXPECT_EQ(parameters(failed)["status"], "failed");
  EXPECT_EQ(parameters(failed)["exit_code"], 3);
  EXPECT_FALSE(parameters(failed).contains("signal"));
  failed.exit_code = 137;
  failed.signal = 9;
  EXPECT_EQ(parameters(failed)["signal"], 9);
  EXPECT_EQ(parameters(testing::run(1, {"true"}))["status"], "done");
}

TEST(ExportSource, AnAttestationIsOfOneRun) {
  const ExportSubject subject = subject_of(testing::pipeline());
  EXPECT_EQ(runs_described(ExportFormat::kInToto, subject), 1U);
  EXPECT_EQ(runs_described(ExportFormat::kProv, subject), 2U);
}

TEST(ExportSource, OpenLineageDistinguishesFailedCommands) {
  const auto name = [](std::vector<std::string> command, const std::string& directory,
                       const std::string& root) {
    store::RunRecord run = testing::run(1, std::move(command));
    run.status = store::RunStatus::kFailed;
    run.stage = 0;
    run.directory = directory;
    ExportSubject subject = subject_of({run});
    subject.project_root = root;
    return export_openlineage(subject)[0]["job"]["name"].get<std::string>();
  };
  const std::string text(100, 'x');
  const std::set<std::string> names = {
      name({"sh", "-c", "exit 1"}, "/p", "/p"), name({"sh", "-c", "exit 2"}, "/p", "/p"),
      name({"sh", "-c", "exit 2"}, "/p/sub", "/p"), name({"sh", text + "1"}, "/p", "/p"),
      name({"sh", text + "2"}, "/p", "/p")};
  EXPECT_EQ(names.size(), 5U);
  EXPECT_THAT(names, ::testing::Contains(::testing::StartsWith("sh -c 'exit 1' [")));
  for (const std::string& one : names) EXPECT_LT(one.size(), 80U);
  // The same in a project that was moved.
  EXPECT_EQ(name({"sh", "x"}, "/p/sub", "/p"), name({"sh", "x"}, "/q/sub", "/q"));
}

TEST(ExportSource, OnlyRoCrateHasTimesWithAnOffset) {
  for (const std::string& format : export_format_names()) {
    const std::string text =
        *export_text(*parse_export_format(format), subject_of(testing::pipeline()));
    const bool crate = format == "ro-crate";
    EXPECT_EQ(text.find(".000Z\"") == std::string::npos && text.find(":00Z\"") == std::string::npos,
              crate)
        << format;
    EXPECT_EQ(text.find(".000+00:00\"") != std::string::npos, crate) << format;
  }
}

}  // namespace
}  // namespace assay::lineage
