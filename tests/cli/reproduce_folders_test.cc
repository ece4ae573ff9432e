// `assay reproduce --run` of what people make: in folders that the command makes, with results
// beside the one that was asked for, and from virtual environments.
#include <unistd.h>

#include "cli/scripted_project.h"
#include "support/reachable_copy.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;

class ReproduceFolders : public ScriptedProject {};

TEST_F(ReproduceFolders, AFolderThatTheCommandMakesIsNotMadeForIt) {
  done(
      "$ASSAY run -- sh -c 'mkdir out && echo hi > out/a && mkdir -p deep/er && date +%N > "
      "deep/er/b'");
  const auto again = shell("$ASSAY reproduce out/a --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("reproduced: "));
}

TEST_F(ReproduceFolders, AFolderThatWasThereIsThereAgain) {
  done("mkdir out && sleep 0.05 && $ASSAY run -- sh -c 'echo hi > out/a'");
  EXPECT_EQ(shell("$ASSAY reproduce out/a --run --directory copy").exit_code, 0);
}

TEST_F(ReproduceFolders, TheArtifactDecidesAndOthersAreRemarks) {
  done("$ASSAY run -- sh -c 'echo same > model; echo same > other; date +%N > log.txt'");
  const auto again = shell("$ASSAY reproduce model --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("log.txt"));
  EXPECT_THAT(again.out, Not(HasSubstr("/other")));
  const auto log = shell("$ASSAY reproduce log.txt --run --directory copy2");
  EXPECT_EQ(log.exit_code, 1) << log.out;
  EXPECT_THAT(log.out, HasSubstr("not reproduced"));
  const Json document = json("reproduce model --run --directory copy3");
  EXPECT_EQ(document["verdict"], "identical");
  EXPECT_EQ(document["reproduction"]["artifact"]["verdict"], "identical");
}

TEST_F(ReproduceFolders, AFolderIsAnArtifact) {
  done("$ASSAY run -- sh -c 'mkdir -p ck/step-2 && echo w > ck/step-2/w && echo m > ck/step-2/m'");
  const auto again = shell("$ASSAY reproduce ck/step-2 --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  done(
      "$ASSAY run -- sh -c 'mkdir -p ck/step-4 && echo w > ck/step-4/w && date +%N > ck/step-4/m'");
  EXPECT_EQ(shell("$ASSAY reproduce ck/step-4 --run --directory copy2").exit_code, 1);
}

TEST_F(ReproduceFolders, EveryRunThatWroteIntoAFolderIsRepeated) {
  done("mkdir d; $ASSAY run -- sh -c 'date +%N > d/a'; $ASSAY run -- sh -c 'echo same > d/b'");
  const auto again = shell("$ASSAY reproduce d --run --directory copy");
  EXPECT_EQ(again.exit_code, 1) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("1 of 2 files in"));
  // Of a file that two runs write, the later content counts.
  done("$ASSAY run -- sh -c 'echo same > d/a'");
  const auto same = shell("$ASSAY reproduce d --run --directory copy2");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
}

// Earlier stages of the same plan decide, too.
TEST_F(ReproduceFolders, AFileThatAnEarlierStageLeftCounts) {
  done("mkdir d; $ASSAY run -- sh -c 'echo x > d/x; date +%N > d/t'");
  done("$ASSAY run -- sh -c 'cat d/x > d/y'");
  EXPECT_EQ(shell("$ASSAY reproduce d --run --directory copy").exit_code, 1);
}

// What a log had before the run is no part of the plan.
TEST_F(ReproduceFolders, ALogIsNoFileOfAFolderUnlessARunReadsIt) {
  done("mkdir d; echo 0 > d/log; $ASSAY run -- sh -c 'echo a > d/a; echo 1' >> d/log");
  const auto again = shell("$ASSAY reproduce d --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("d is identical, every file of it"));
  done("$ASSAY run -- sh -c 'wc -l < d/log > n'");
  const auto undecided = shell("$ASSAY reproduce d --run --directory copy2");
  EXPECT_EQ(undecided.exit_code, 2) << undecided.out << undecided.err;
  EXPECT_THAT(undecided.out + undecided.err, HasSubstr("d/log"));
}

TEST_F(ReproduceFolders, ATrainingRun) {
  done(
      "$ASSAY train demo --quiet --device cpu --set train.steps=2 --set model.layers=1"
      " --set model.dim=32 --set model.ffn=64 --out run");
  const auto again =
      shell("$ASSAY reproduce run/checkpoints/step-2/weights.safetensors --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("metrics.jsonl"));  // which has times
  // Of the checkpoint every file: none of them has.
  const auto folder = shell("$ASSAY reproduce run/checkpoints/step-2 --run --directory copy2");
  EXPECT_EQ(folder.exit_code, 0) << folder.out << folder.err;
}

TEST_F(ReproduceFolders, AnArchivedInputIsPutBack) {
  done("echo one > raw; $ASSAY run -- sh -c 'rev raw > made'; $ASSAY archive raw; echo two > raw");
  EXPECT_EQ(json("reproduce made")["stages"][0]["inputs"][0]["state"], "archived");
  const auto again = shell("$ASSAY reproduce made --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  done("rm -rf .assay/archive");
  EXPECT_EQ(shell("$ASSAY reproduce made --run --directory copy2").exit_code, 2);
}

// As an ordinary user, whom a file's permissions bind.
TEST_F(ReproduceFolders, AnArchivedInputMayBeChangedInPlace) {
  const std::string user =
      ::geteuid() == 0 ? "chmod 777 . && exec setpriv --reuid=65534 --regid=65534 --clear-groups "
                       : "exec ";
  write("script",
        "export HOME=$PWD; echo one > raw; $1 run -- sh -c 'cat raw > seen' && $1 archive raw &&"
        " $1 run -- sh -c 'echo two >> raw' && $1 reproduce raw --run --directory copy &&"
        " cat copy/raw\n");
  const auto again = done(user + "sh script '" + support::reachable_program() + "'");
  EXPECT_THAT(again.out, ::testing::EndsWith("one\ntwo\n")) << again.err;
}

class ReproduceInVenv : public ScriptedProject {
 protected:
  // Without pip, which takes seconds; its one package is written by hand.
  void SetUp() override {
    done("python3 -m venv --without-pip .venv");
    const std::string site = done("echo .venv/lib/python3*/site-packages").out;
    const std::string folder = site.substr(0, site.find('\n'));
    write(folder + "/weights.py", "VALUE = 42\n");
    write(folder + "/weights-1.5.dist-info/METADATA",
          "Metadata-Version: 2.1\nName: weights\nVersion: 1.5\n");
    write(folder + "/weights-1.5.dist-info/RECORD", "weights.py,,\n");
    write("make.py", "import weights, sys\nopen('out.txt', 'w').write(str(weights.VALUE))\n");
  }
};

TEST_F(ReproduceInVenv, HowTheEnvironmentIsUsedIsSaidBeforeAnythingRuns) {
  done("$ASSAY run -- .venv/bin/python make.py");
  const auto again = shell("$ASSAY reproduce out.txt --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  const std::size_t shared = again.err.find("/.venv is ");
  const std::size_t stage = again.err.find("stage 1 of 1");
  ASSERT_NE(shared, std::string::npos) << again.err;
  ASSERT_NE(stage, std::string::npos) << again.err;
  EXPECT_LT(shared, stage);
}

// As Python does with compiled modules, node_modules/.cache, nltk and the like.
TEST_F(ReproduceInVenv, AStageThatWritesIntoTheEnvironmentDoesNotReachTheProjects) {
  write("make.py",
        "import os, pathlib, sys\n"
        "notes = pathlib.Path(sys.prefix) / 'notes'\n"
        "notes.write_text('from ' + os.getcwd())\n"
        "pathlib.Path(sys.prefix, 'gone').unlink(missing_ok=True)\n"
        "pathlib.Path('out.txt').write_text('42')\n");
  done("$ASSAY run -- .venv/bin/python make.py && echo kept > .venv/gone");
  const std::string before = done("find .venv -type f | sort | xargs sha256sum").out;
  const auto again = shell("$ASSAY reproduce out.txt --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_EQ(done("find .venv -type f | sort | xargs sha256sum").out, before);
}

// Paths inside files are not replaced; what they lead to is protected where mounts are allowed.
TEST_F(ReproduceFolders, AStageCannotWriteToTheProjectByAPathInAFile) {
  if (shell("unshare -m true || unshare -Um true").exit_code != 0) GTEST_SKIP() << "no mounts";
  done("echo \"$PWD/kept\" > where; echo old > kept");
  done("$ASSAY run -- sh -c 'echo made > \"$(cat where)\"; echo out > out'");
  done("echo edited > kept");
  const auto again = shell("$ASSAY reproduce out --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_EQ(done("cat kept").out, "edited\n");
}

TEST_F(ReproduceInVenv, TheEnvironmentIsUsedInPlace) {
  for (const std::string command : {".venv/bin/python make.py", "\"$PWD/.venv/bin/python\" make.py",
                                    "env PATH=\"$PWD/.venv/bin:$PATH\" python make.py"}) {
    done("rm -rf copy out.txt; $ASSAY run -- " + command);
    const Json plan = json("reproduce out.txt");
    for (const Json& difference : plan["differences"]) {
      EXPECT_NE(difference["what"], "pip weights") << difference;
    }
    const auto again = shell("$ASSAY reproduce out.txt --run --directory copy");
    EXPECT_EQ(again.exit_code, 0) << command << again.out << again.err;
  }
}

TEST_F(ReproduceInVenv, TheEnvironmentIsNotTakenFromTheDiffOfUntrackedFiles) {
  done("git init -q . && git add make.py && git -c user.name=a -c user.email=a@b commit -qm x");
  done("$ASSAY run -- .venv/bin/python make.py");
  const auto again = shell(
      "$ASSAY reproduce out.txt --run --directory ../$$-copy; e=$?; rm -rf ../$$-copy; exit $e");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
}

TEST_F(ReproduceInVenv, AnotherVersionOfAPackageIsADifference) {
  done("$ASSAY run -- .venv/bin/python make.py");
  done(
      "cd .venv/lib/python3*/site-packages && mv weights-1.5.dist-info weights-1.6.dist-info &&"
      " sed -i s/1.5/1.6/ weights-1.6.dist-info/METADATA");
  bool found = false;
  const Json plan = json("reproduce out.txt");
  for (const Json& difference : plan["differences"]) {
    found = found || (difference["what"] == "pip weights" && difference["recorded"] == "1.5" &&
                      difference["here"] == "1.6");
  }
  EXPECT_TRUE(found);
}

TEST_F(ReproduceInVenv, WhatCannotWorkIsSaidBeforeAnythingRuns) {
  done("$ASSAY run -- .venv/bin/python make.py && rm -rf .venv");
  const auto again = shell("$ASSAY reproduce out.txt --run --directory copy; ls copy");
  EXPECT_THAT(again.out, HasSubstr("/.venv is not here, and no recorded run makes it; "));
  EXPECT_THAT(again.err, Not(HasSubstr("stage 1")));
  EXPECT_EQ(shell("$ASSAY reproduce out.txt --run --directory copy").exit_code, 2);
}

TEST_F(ReproduceInVenv, AnEnvironmentThatARunMakesIsMadeAgain) {
  done("rm -rf .venv && $ASSAY run --build -- python3 -m venv --without-pip .venv");
  write("make.py", "import sys\nopen('out.txt', 'w').write(sys.prefix[-5:])\n");
  done("$ASSAY run -- .venv/bin/python make.py && rm -rf .venv");
  const auto again = shell("$ASSAY reproduce out.txt --run --directory copy");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
}

}  // namespace
}  // namespace assay
