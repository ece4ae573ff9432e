// Answers that people rely on: what is fresh, who changed a file, and what is at a path now.
#include "cli/scripted_project.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;

class Fresh : public ScriptedProject {
 protected:
  // The only stage's state and reasons.
  std::string state(std::size_t stage = 0) {
    const Json document = json("status");
    const Json& one = document["stages"][stage];
    if (!one["stale"]) return "fresh";
    return one["why"][0].get<std::string>();
  }
};

TEST_F(Fresh, AnotherMakeThatDoesNothingChangesNothing) {
  write("Makefile", "all: a.out b.out\n%.out: %.in\n\tcat $< > $@\n");
  write("a.in", "a");
  write("b.in", "b");
  done("$ASSAY run -- make -s && $ASSAY run -- make -s && $ASSAY run -- make -s");
  EXPECT_EQ(state(), "fresh");
  write("a.in", "other");
  EXPECT_EQ(state(), "input a.in has changed");
  // Only a part is made again; the rest still depends on what the first run read.
  done("sleep 0.02; touch a.in; $ASSAY run -- make -s");
  EXPECT_EQ(state(), "fresh");
  write("b.in", "other");
  EXPECT_EQ(state(), "input b.in has changed");
  done("rm b.out; echo -n b > b.in");
  EXPECT_EQ(state(), "output b.out is gone");
  EXPECT_THAT(done("$ASSAY lineage a.out").out, HasSubstr("a.in"));
}

// A script that was changed so that it does without some of its files.
TEST_F(Fresh, WhatTheStageStoppedReadingAndWritingMakesItStaleOnceAtMost) {
  write("x", "x");
  write("y", "y");
  write("s.sh", "cat x > a; cat y > b; cat y > c\n");
  done("$ASSAY run -- sh s.sh");
  write("s.sh", "cat x > a\n");
  done("sleep 0.02; $ASSAY run @1");
  EXPECT_EQ(state(), "fresh");
  write("y", "changed");
  EXPECT_EQ(state(), "input y has changed") << "b and c are made of it, as far as is known";
  done("sleep 0.02; $ASSAY refresh");
  EXPECT_EQ(state(), "fresh") << "it was run with the new y, and did not read it";
  done("rm y b");
  EXPECT_EQ(shell("$ASSAY status").exit_code, 1);
  done("sleep 0.02; $ASSAY refresh");
  EXPECT_EQ(state(), "fresh");
  write("c", "edited");
  EXPECT_THAT(state(), HasSubstr("output c was changed by hand"));
  EXPECT_EQ(shell("$ASSAY run @1").exit_code, 1) << "it wrote c once: an edit might be lost";
  done("sleep 0.02; $ASSAY run @1 --overwrite");
  EXPECT_EQ(state(), "fresh") << "it does not write c";
  write("x", "changed");
  EXPECT_EQ(state(), "input x has changed");
}

// make builds from an edited file, and leaves it alone.
TEST_F(Fresh, AnEditThatTheLastRunReadIsNoPartOfWhatTheStageMakes) {
  write("Makefile", "prog: gen.h\n\tcat gen.h > prog\ngen.h: spec\n\tcat spec > gen.h\n");
  write("spec", "spec");
  done("$ASSAY run -- make -s");
  EXPECT_EQ(state(), "fresh");
  done("sleep 0.02; echo edited > gen.h; sleep 0.02; $ASSAY run -- make -s");
  EXPECT_EQ(shell("cat prog").out, "edited\n");
  EXPECT_EQ(state(), "output gen.h was changed by hand (no run did it)");
}

TEST_F(Fresh, ANewNameEveryTimeIsNotAPartOfTheStage) {
  done(
      "echo 1 > in; $ASSAY run -- sh -c 'cat in > out-$(date +%N)' && "
      "$ASSAY run -- sh -c 'cat in > out-$(date +%N)' && rm -f $(ls out-* | head -1)");
  const Json document = json("status");
  EXPECT_EQ(document["stages"].size(), 1U);
  EXPECT_THAT(document["stages"][0]["why"].dump(), Not(HasSubstr("in has changed")));
}

TEST_F(Fresh, ALinkThatTheStageMadeIsAnOutput) {
  done("$ASSAY run -- sh -c 'echo 1 > v1; ln -sfn v1 latest'");
  const auto shown = done("$ASSAY show last");
  EXPECT_THAT(shown.out, HasSubstr("latest"));
  EXPECT_EQ(state(), "fresh");
  done("ln -sfn v0 latest");
  EXPECT_EQ(state(), "link latest leads to v0 now");
}

// What a command was told about names, whatever observes it.
class FreshUnder : public Fresh, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const Json tracers = json("tracers")["tracers"];
    for (const Json& one : tracers) {
      if (one["name"] == GetParam() && !one["available"]) GTEST_SKIP() << one["reason"];
    }
  }
  // $RUN is `assay run` under the tracer.
  support::ProcessResult done(const std::string& script) {
    return Fresh::done(std::string("RUN=\"$ASSAY run --tracer ") + GetParam() + "\"; " + script);
  }
};
INSTANTIATE_TEST_SUITE_P(Tracers, FreshUnder, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& tracer) { return std::string(tracer.param); });

TEST_P(FreshUnder, ALinkThatLeadsElsewhereIsAChange) {
  done(
      "mkdir v1 v2 && echo 1 > v1/x && echo 1 > v2/x && ln -s v1 current &&"
      " $RUN -- sh -c 'cat current/x > out'");
  EXPECT_EQ(state(), "fresh");
  done("ln -sfn v2 current");
  EXPECT_EQ(state(), "link current leads to v2 now");
  done("ln -sfn v1 current");
  EXPECT_EQ(state(), "fresh");
  done("rm current");
  EXPECT_EQ(state(), "link current is gone");
  done("cp -r v1 current");
  EXPECT_EQ(state(), "link current is a folder now");
}

TEST_F(Fresh, ALinkThatBecameAFileIsNotGone) {
  done("echo 1 > data; ln -s data in; $ASSAY run -- cp in out; rm in; cp data in");
  EXPECT_EQ(state(), "link in is a file now");
}

TEST_P(FreshUnder, AFileAddedToAListedFolderIsAChange) {
  done(
      "mkdir data && echo 1 > data/a.csv && echo 2 > data/b.csv &&"
      " $RUN -- sh -c 'cat data/*.csv > all'");
  write("data/notes.txt", "not of this kind");
  EXPECT_EQ(state(), "fresh");
  write("data/c.csv", "3");
  EXPECT_EQ(state(), "data/c.csv is new in a folder that was listed");
  done("$ASSAY run @1");
  EXPECT_EQ(state(), "fresh");
}

TEST_P(FreshUnder, PythonsOwnListingsDoNotCount) {
  write("mod.py", "X = 1\n");
  write("one.py", "import mod\nopen('out', 'w').write(open('a.csv').read())\n");
  write("all.py",
        "import glob, mod\nopen('sum', 'w').write(str([open(f).read() for f in "
        "glob.glob('*.csv')]))\n");
  write("a.csv", "1");
  done("$RUN -- python3 one.py && $RUN -- python3 all.py");
  write("b.csv", "2");
  EXPECT_EQ(state(0), "fresh");
  EXPECT_EQ(state(1), "b.csv is new in a folder that was listed");
}

TEST_P(FreshUnder, WhatWasLookedForAndIsThereNowIsAChange) {
  write("look.py", "import os\nopen('out', 'w').write(str(os.path.exists('conf.json')))\n");
  write("try.py",
        "try:\n  text = open('extra.txt').read()\nexcept FileNotFoundError:\n  text = ''\n"
        "open('tried', 'w').write(text)\n");
  done(
      "$RUN -- python3 look.py && $RUN -- python3 try.py &&"
      " $RUN -- sh -c 'test -e made || echo 1 > made; test -f switch || echo 2 > off'");
  EXPECT_EQ(state(0), "fresh");
  EXPECT_EQ(state(1), "fresh");
  EXPECT_EQ(state(2), "fresh");  // it made one of the two itself
  write("conf.json", "{}");
  write("extra.txt", "x");
  write("switch", "");
  EXPECT_EQ(state(0), "conf.json was looked for, and is there now");
  EXPECT_EQ(state(1), "extra.txt was looked for, and is there now");
  EXPECT_EQ(state(2), "switch was looked for, and is there now");
}

TEST_P(FreshUnder, WhatAppearedIsOldNewsAfterTheNextRun) {
  write("Makefile", "all: a.out b.out\n%.out: %.in\n\ttest -f extra; cat $< > $@\n");
  write("a.in", "a");
  write("b.in", "b");
  done("$RUN -- make -si");
  write("extra", "");
  EXPECT_EQ(state(), "extra was looked for, and is there now");
  done("sleep 0.02; touch a.in; $RUN -- make -si");
  EXPECT_EQ(state(), "fresh");
}

// Without a C library that could be replaced.
TEST_P(FreshUnder, StaticProgramsToo) {
  write("look.c", R"(
    #include <dirent.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/stat.h>
    #include <unistd.h>
    int main() {
      char text[100] = {0}, path[300];
      struct stat status;
      int from = open("current/x", O_RDONLY), to = open("out", O_WRONLY | O_CREAT, 0600);
      write(to, text, read(from, text, sizeof text));
      if (open("extra", O_RDONLY) >= 0 || stat("switch", &status) == 0) return 1;
      DIR* folder = opendir("data");
      for (struct dirent* entry; (entry = readdir(folder)) != 0;) {
        snprintf(path, sizeof path, "data/%s", entry->d_name);
        if (strstr(path, ".csv")) write(to, text, read(open(path, O_RDONLY), text, sizeof text));
      }
      return 0;
    }
  )");
  done(
      "cc -static -w -o look look.c && mkdir v1 v2 data && echo 1 | tee v1/x v2/x > data/a.csv &&"
      " ln -s v1 current && $RUN -- ./look");
  EXPECT_EQ(state(), "fresh");
  done("ln -sfn v2 current");
  EXPECT_EQ(state(), "link current leads to v2 now");
  done("ln -sfn v1 current; touch extra");
  EXPECT_EQ(state(), "extra was looked for, and is there now");
  done("rm extra; touch data/b.csv");
  EXPECT_EQ(state(), "data/b.csv is new in a folder that was listed");
  done("rm data/b.csv; touch switch");
  // Stopping every stat of every program would cost ten times what it takes
  // (bench/results/ebpf.md).
  const bool seen = std::string_view(GetParam()) != "preload";
  EXPECT_EQ(state(), seen ? "switch was looked for, and is there now" : "fresh");
}

TEST_F(Fresh, AnEditByHandIsCalledThatAndNotOverwritten) {
  done(
      "echo 1 > raw && $ASSAY run -- sh -c 'cat raw > clean' &&"
      " $ASSAY run -- sh -c 'cat clean > model' && echo edited >> clean");
  EXPECT_EQ(state(), "output clean was changed by hand (no run did it)");
  EXPECT_THAT(state(1), HasSubstr("input clean was changed by hand"));
  const auto status = shell("$ASSAY status");
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.out, HasSubstr("running stage 1 again overwrites it"));
  EXPECT_THAT(status.out, HasSubstr("next: cp clean clean.edited && assay run @1"));
  write("clean.edited", "another edit");
  EXPECT_THAT(shell("$ASSAY status").out, HasSubstr("cp clean clean.edited-2 && assay run @1"));
}

TEST_F(Fresh, ARunThatFailedIsBlamedForWhatItWrote) {
  done("echo 1 > raw && $ASSAY run -- sh -c 'cat raw > clean'");
  shell("$ASSAY run -- sh -c 'echo half > clean; exit 1'");
  EXPECT_EQ(state(), "output clean was written by run 2 since");
}

TEST_F(Fresh, GcKeepsTheMakerOfAFileThatIsThere) {
  write("Makefile", "a.out: a.in\n\tcat $< > $@\n");
  write("a.in", "a");
  done("$ASSAY run -- make -s && $ASSAY run -- make -s && $ASSAY gc");
  EXPECT_THAT(done("$ASSAY lineage a.out").out, HasSubstr("(run 1)"));
  write("a.in", "b");
  EXPECT_EQ(state(), "input a.in has changed");
  // What is nowhere any more may go.
  done("sleep 0.02; touch a.in; $ASSAY run -- make -s && $ASSAY gc");
  EXPECT_EQ(json("log")["runs"].size(), 1U);
}

class Noise : public ScriptedProject {};

TEST_F(Noise, ALogIsNoInput) {
  done("echo 1 > in; for i in 1 2; do $ASSAY run -- sh -c 'echo note; cat in > out' >> log; done");
  EXPECT_THAT(done("$ASSAY lineage out --up").out, Not(HasSubstr("log")));
  for (const char* format : {"prov", "in-toto"}) {
    const Json document =
        Json::parse(done("$ASSAY export out --format " + std::string(format)).out);
    const std::string read = format == std::string("prov")
                                 ? document["used"].dump()
                                 : document["predicate"]["buildDefinition"].dump();
    EXPECT_THAT(read, Not(HasSubstr("/log"))) << format;
  }
  // Asked about itself, it came from what it was before.
  EXPECT_THAT(done("$ASSAY lineage log --up").out, HasSubstr("(run 1)"));
}

TEST_F(Noise, NoErrorsAreNoOutput) {
  done("$ASSAY run -- sh -c 'echo 1 > out' 2> errors");
  EXPECT_EQ(json("show last")["outputs"].size(), 1U);
  done("$ASSAY run -- sh -c 'echo 1 > out; echo oh >&2' 2> errors");
  EXPECT_EQ(json("show last")["outputs"].size(), 1U) << "a log beside it";
  done("$ASSAY run -- sh -c 'echo oh >&2' 2> errors");
  EXPECT_EQ(json("show last")["outputs"].size(), 1U) << "all that it made";
}

TEST_F(Noise, FilesOfToolsAreLeftOutUnlessTheyAreWanted) {
  const std::string script =
      "'mkdir -p .dvc/tmp _cacache && echo 1 | tee .dvc/tmp/lock _cacache/x out~ .a.swp result'";
  done("$ASSAY run -- sh -c " + script);
  EXPECT_EQ(json("show last")["outputs"].size(), 1U);
  EXPECT_THAT(done("$ASSAY show last --explain").out, HasSubstr("tools"));
  write(".assayignore", "!.dvc/tmp/\n");
  done("$ASSAY run -- sh -c " + script);
  EXPECT_EQ(json("show last")["outputs"].size(), 2U);
}

class OnDisk : public ScriptedProject {
 protected:
  void SetUp() override {
    done("echo 1 > raw && $ASSAY run -- sh -c 'cat raw > clean && cat raw raw > second'");
  }
};

TEST_F(OnDisk, LineageSaysWhetherTheFileIsWhatTheRunLeft) {
  EXPECT_THAT(done("$ASSAY lineage clean").out, HasSubstr("clean: unchanged since run 1\n"));
  EXPECT_THAT(done("$ASSAY lineage raw").out, HasSubstr("raw: unchanged since run 1 read it\n"));
  EXPECT_EQ(json("lineage clean")["on_disk"]["state"], "unchanged");
  done("echo edited > clean");
  for (const std::string verb : {"lineage clean", "reproduce clean"}) {
    EXPECT_THAT(done("$ASSAY " + verb).out,
                HasSubstr("clean: this is not what run 1 left: changed by hand (or by something "
                          "unrecorded) since "));
  }
  EXPECT_THAT(done("$ASSAY export clean --format prov").err,
              HasSubstr("this is not what run 1 left"));
  EXPECT_EQ(json("lineage clean")["on_disk"]["state"], "changed");
  done("rm clean");
  EXPECT_THAT(done("$ASSAY lineage clean").out, HasSubstr("clean: gone: run 1 left it"));
}

TEST_F(OnDisk, AnEarlierContentIsTheOneThatIsMeant) {
  done(
      "cp -p clean kept && echo 2 > raw && $ASSAY run -- sh -c 'cat raw > clean && cat raw > "
      "second'");
  done("cp kept clean");
  const auto shown = done("$ASSAY lineage clean --up");
  EXPECT_THAT(shown.out,
              HasSubstr("this is what run 1 left; run 2 left something else here later"));
  EXPECT_THAT(shown.out, HasSubstr("(run 1)"));
  EXPECT_THAT(shown.out, Not(HasSubstr("(run 2)")));
}

TEST_F(OnDisk, AFolderIsAnArtifact) {
  done(
      "$ASSAY run -- sh -c 'mkdir -p ck/step-2 && cat clean > ck/step-2/w && cat clean > "
      "ck/step-2/m'");
  done("$ASSAY run -- sh -c 'cat ck/step-2/w > scores'");
  const auto shown = done("$ASSAY lineage ck/step-2");
  EXPECT_THAT(shown.out, HasSubstr("ck/step-2: unchanged since run 2: 2 files"));
  EXPECT_THAT(shown.out, HasSubstr("ck/step-2  2 files · 4 B"));
  EXPECT_THAT(shown.out, HasSubstr("clean"));
  EXPECT_THAT(shown.out, HasSubstr("scores"));
  EXPECT_THAT(done("$ASSAY lineage ck/step-2/ --up").out, HasSubstr("(run 2)"));
  done("echo x >> ck/step-2/w && rm ck/step-2/m");
  EXPECT_THAT(done("$ASSAY lineage ck/step-2").out, HasSubstr("of 2 files, 1 changed by hand"));
}

TEST_F(OnDisk, AnExportedFolderHasEveryRunThatLeftAFileInIt) {
  done("mkdir d; $ASSAY run -- sh -c 'echo 1 > d/a'; $ASSAY run -- sh -c 'echo 2 > d/b'");
  done("$ASSAY run -- sh -c 'echo 3 > other'");
  const Json prov = Json::parse(done("$ASSAY export d --format prov").out);
  EXPECT_EQ(prov["activity"].size(), 2U);
  const auto statement = done("$ASSAY export d --format in-toto");
  EXPECT_EQ(Json::parse(statement.out)["subject"].size(), 1U);
  EXPECT_THAT(statement.err, HasSubstr("2 runs left files in it"));
}

TEST_F(OnDisk, Words) {
  EXPECT_THAT(done("$ASSAY lineage clean --down").out, HasSubstr("nothing recorded has read it"));
  EXPECT_THAT(shell("$ASSAY dag 99").err, HasSubstr("no run 99; the newest is 1"));
  EXPECT_THAT(shell("$ASSAY show 99").err, HasSubstr("no run 99; the newest is 1"));
  for (const char* digits :
       {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"}) {
    EXPECT_EQ(shell(std::string("$ASSAY lineage ") + digits).exit_code, 64) << digits;
  }
  done("$ASSAY label clean good && $ASSAY label 1 base");
  const auto labels = done("$ASSAY label");
  EXPECT_THAT(labels.out, HasSubstr("clean ("));
  EXPECT_THAT(labels.out, HasSubstr("left by run 1"));
  EXPECT_THAT(labels.out, HasSubstr("run 1: sh -c"));
  const std::string longer(70, 'y');
  done("$ASSAY run -- sh -c 'true one " + longer + " end-of-this'");
  EXPECT_THAT(shell("$ASSAY diff 1 2").out, HasSubstr("end-of-this"));
}

TEST_F(OnDisk, NamesOfFilesThatAreUsedElsewhereToo) {
  done("cp clean copy; $ASSAY run -q -- cp clean copy2; $ASSAY run -q -- cp copy2 copy3");
  EXPECT_THAT(done("$ASSAY label copy2 m1").out, HasSubstr("m1 names copy2 ("));
  EXPECT_THAT(done("$ASSAY label m1 m2").out, HasSubstr("also at "));
  done("$ASSAY run -q -- cp clean ./--help");
  EXPECT_THAT(done("$ASSAY lineage -- --help").out, HasSubstr("next: assay dag ./--help"));
}

TEST_F(OnDisk, AppendingIsNotOverwriting) {
  done("$ASSAY run -q -- sh -c 'cat clean >> notes'; $ASSAY run -q -- sh -c 'cat clean >> notes'");
  done("$ASSAY run -q -- echo x >> list; echo edited >> list");
  EXPECT_THAT(shell("$ASSAY status").out, HasSubstr("appends to it"));
}

TEST_F(OnDisk, StagesWithOneCommandAreToldApartByFolder) {
  done("for d in one two; do mkdir $d; (cd $d; $ASSAY run -q -- sh -c 'echo 1 > out'); done");
  const auto status = shell("$ASSAY status").out;
  EXPECT_THAT(status, HasSubstr("echo 1 > out'  in one"));
  EXPECT_THAT(status, HasSubstr("echo 1 > out'  in two"));
}

TEST_F(OnDisk, FilesOfGitSayWhichCommit) {
  done(
      "git init -q . && echo 'cat raw' > s.sh && git add s.sh raw &&"
      " git -c user.name=a -c user.email=a@b commit -qm x && echo 3 > raw && echo 4 > more");
  done("$ASSAY run -- sh -c '. ./s.sh > out; cat more >> out'");
  const std::string commit = done("git rev-parse --short=7 HEAD").out.substr(0, 7);
  const auto shown = done("$ASSAY lineage out --up").out;
  EXPECT_THAT(shown, HasSubstr("in git at " + commit + "\n"));
  EXPECT_THAT(shown, HasSubstr("in git at " + commit + ", with uncommitted changes"));
  EXPECT_THAT(shown, HasSubstr("untracked at " + commit + ", in the recorded diff"));
  EXPECT_THAT(done("$ASSAY lineage s.sh --up").out, HasSubstr("in git at " + commit + "\n"));
}

}  // namespace
}  // namespace assay
