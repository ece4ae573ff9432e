// assay pack and unpack: results made again in another place, and packs that mean harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Pack : public ::testing::Test {
 protected:
  void SetUp() override { shell("mkdir project && cd project && $A init -q"); }
  support::ProcessResult shell(const std::string& script) {
    return support::run({{"bash", "-c", "export A='" + support::program() + "'; " + script},
                         "",
                         directory_.path()});
  }
  std::string content(const std::string& name) {
    std::ifstream file(directory_.path() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A pack of two stages, as p.tar.
  void make_pack() {
    shell(
        "cd project; seq 20 > raw; printf 'sort -rn \"$1\"\\n' > by.sh;"
        " $A run -- sh -c 'sh by.sh raw > sorted'; $A run -- sh -c 'head -3 sorted > top'");
    const auto packed = shell("cd project; $A pack top -o ../p.tar");
    EXPECT_EQ(packed.exit_code, 0) << packed.err;
  }

  base::testing::TempDir directory_;
};

TEST_F(Pack, WhatIsUnpackedElsewhereIsMadeAgainBitForBit) {
  shell("mkdir data; seq 5 > data/extra");
  shell(
      "cd project; seq 20 > raw; printf '#!/bin/sh\\nsort -rn \"$@\"\\n' > by.sh; chmod +x by.sh;"
      " $A run -- sh -c './by.sh \"$@\" > sorted' - raw $(realpath ../data/extra);"
      " $A run -- sh -c 'head -3 sorted' > top");
  ASSERT_EQ(content("project/top"), "20\n19\n18\n");
  const auto packed = shell("cd project; $A pack top -o ../top.tar.zst --json");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_EQ(Json::parse(packed.out)["runs"].size(), 2U);
  EXPECT_EQ(Json::parse(packed.out)["contents"], 3);
  shell("rm -r project data");
  const auto unpacked = shell("$A unpack top.tar.zst --directory new");
  ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
  EXPECT_THAT(unpacked.out, HasSubstr("next: cd new && assay reproduce top --run"));
  EXPECT_FALSE(fs::exists(directory_.path() / "new/top")) << "nothing is run";
  const auto made = shell("cd new; $A reproduce top --run --directory ../copy");
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_THAT(made.out, HasSubstr("identical"));
  const auto refreshed = shell("cd new; $A refresh");
  EXPECT_EQ(refreshed.exit_code, 0) << refreshed.out << refreshed.err;
  EXPECT_EQ(content("new/top"), "20\n19\n18\n");
}

// The log is in a folder that the pack does not have; `refresh` goes on without it, too.
TEST_F(Pack, ALogThatWasElsewhereIsNotNeededToMakeTheFileAgain) {
  shell(
      "mkdir logs; echo old > logs/err; cd project; echo 1 > in;"
      " $A run -- cp in out 2>> ../logs/err; $A pack out -o ../p.tar");
  ASSERT_EQ(shell("rm -r project logs; $A unpack p.tar --directory new").exit_code, 0);
  const auto made = shell("cd new; $A reproduce out --run --directory ../copy");
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_THAT(made.err, HasSubstr("the stage's standard error is not redirected"));
  EXPECT_EQ(content("copy/out"), "1\n");
  EXPECT_EQ(shell("cd new; $A refresh").exit_code, 0);
}

TEST_F(Pack, AnyTarReadsItAndContentsAreNamedByTheirDigest) {
  make_pack();
  shell("cd project; $A pack 2 -o ../run.tar.zst");
  for (const std::string file : {"p.tar", "run.tar.zst"}) {
    const auto sums = shell("rm -rf x; mkdir x; tar -C x -xf " + file +
                            " && cd x/contents && for f in *; do "
                            "[ $(b3sum --no-names $f) = $f ] || echo wrong $f; done; ls | wc -l");
    EXPECT_EQ(sums.out, "2\n") << file << sums.err;
  }
  const Json manifest = Json::parse(content("x/manifest.json"));
  EXPECT_EQ(manifest["artifact"], Json());
  EXPECT_EQ(manifest["runs"].size(), 2U);
  EXPECT_FALSE(manifest["runs"][0]["packages"].empty());
}

TEST_F(Pack, SecretsStayHere) {
  shell(
      "cd project; git init -q .; echo 'T = \"AKIAIOSFODNN7EXAMPL2\"' > old.py; git add old.py;"
      " git -c user.name=a -c user.email=a@b commit -q -m 0; echo 'T = 1' > old.py;"
      " printf -- '-----BEGIN %s KEY-----\\nMIIEvQ\\n' PRIVATE > id; mkdir sub;"
      " echo PASSWORD=tr0ub4dor > .env; echo 'k = \"AKIAIOSFODNN7EXAMPLE\"' > conf.py;"
      " cp .env sub/copy; echo 1 > in; : > empty; : > sub/.env;"
      " API_KEY=swordfish $A run -- sh -c 'cat sub/copy .env conf.py id empty sub/.env in "
      ">/dev/null;"
      " cat in > out' - --password=opensesame");
  const auto packed = shell("cd project; $A pack out -o ../s.tar");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("left out: .env: files of this name usually hold secrets"));
  EXPECT_THAT(packed.out, HasSubstr("left out: conf.py: it contains a secret"));
  EXPECT_THAT(packed.out, HasSubstr("left out: id: it contains a secret"));
  EXPECT_THAT(packed.out, HasSubstr("left out: sub/copy: it has the content of a file with"));
  const std::string bytes = content("s.tar");
  EXPECT_THAT(bytes, HasSubstr("+T = 1")) << "the diff";
  for (const char* secret :
       {"tr0ub4dor", "AKIAIOSFODNN7EXAMPL", "swordfish", "opensesame", "MIIEvQ"}) {
    EXPECT_THAT(bytes, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(shell("$A unpack s.tar").out, HasSubstr("not in the pack: "));
  EXPECT_FALSE(fs::exists(directory_.path() / "s/.env"));
  EXPECT_TRUE(fs::exists(directory_.path() / "s/empty")) << "nothing has no secret in it";
}

TEST_F(Pack, OfTwoContentsAtOnePathTheOlderIsInTheArchive) {
  shell(
      "cd project; echo 1 > in; $A run -- sh -c 'cp in a'; $A archive 1 --inputs;"
      " echo 2 > in; $A run -- sh -c 'cp in b'; $A run -- sh -c 'cat a b > both'");
  ASSERT_EQ(shell("cd project; $A pack both -o ../p.tar").exit_code, 0);
  const auto unpacked = shell("$A unpack p.tar --json");
  ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
  EXPECT_EQ(Json::parse(unpacked.out)["older"].size(), 1U);
  EXPECT_EQ(content("p/in"), "2\n");
  const auto made = shell("cd p; $A reproduce both --run --directory ../copy");
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
}

TEST_F(Pack, WhatIsGoneIsNotPackedUnlessItWasArchived) {
  shell("cd project; echo 1 > in; $A run -- sh -c 'sed s/1/x/ in > out'; cp in kept; echo 2 > in");
  const auto refused = shell("cd project; $A pack out -o ../p.tar");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("/in: has changed since it was read"));
  EXPECT_FALSE(fs::exists(directory_.path() / "p.tar"));
  shell("cd project; cp kept in; $A archive 1 --inputs; echo 2 > in");
  EXPECT_EQ(shell("cd project; $A pack out -o ../p.tar").exit_code, 0);
  EXPECT_EQ(shell("$A unpack p.tar && cd p && $A refresh -q").exit_code, 0);
  EXPECT_EQ(content("p/in") + content("p/out"), "1\nx\n");
}

// Names that Assay itself uses elsewhere are ordinary ones in a project.
TEST_F(Pack, ProjectsWithNamesLikeOurs) {
  shell("mkdir data; echo far > data/far");
  shell(
      "cd project; mkdir outside-the-project .assay-unpack; echo near > outside-the-project/near;"
      " echo notes > .assay-unpack/notes; mkdir .git-like;"
      " $A run -- sh -c 'cat outside-the-project/near .assay-unpack/notes \"$1\" > all' -"
      " $(realpath ../data/far)");
  const auto packed = shell("cd project; $A pack all -o ../p.tar");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const auto made = shell(
      "rm -r project data; $A unpack p.tar --directory new && cd new && ls -A &&"
      " $A reproduce all --run --directory copy");
  EXPECT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_EQ(content("new/copy/all"), "near\nnotes\nfar\n");
  EXPECT_THAT(made.out, HasSubstr("outside-the-project-2\n"));
}

// What pack writes, unpack takes: it says itself what cannot be packed.
TEST_F(Pack, FilesOfGitAndAssayAreLeftOutInEveryPlace) {
  const auto packed = shell(
      "cd project; git init -q . ; $A run -- sh -c 'echo said; echo m > m' > .git/log;"
      " echo x > .git/x; $A run -- mv .git/x y; $A run -- cp y z;"
      " $A pack m -o ../m.tar && $A pack z -o ../z.tar && cd .. &&"
      " $A unpack m.tar --directory m && $A unpack z.tar --directory z");
  EXPECT_EQ(packed.exit_code, 0) << packed.out << packed.err;
  const auto inside = shell(
      "cd project/.git && $A run -- sh -c 'echo 1 > ../one'; cd ..;"
      " $A pack one -o ../one.tar");
  EXPECT_EQ(inside.exit_code, 64) << inside.out;
  EXPECT_THAT(inside.err, HasSubstr("belongs to git or to Assay and cannot be packed"));
}

TEST_F(Pack, NothingIsOverwritten) {
  make_pack();
  const auto again = shell("cd project; $A pack top -o ../p.tar");
  EXPECT_EQ(again.exit_code, 64);
  EXPECT_THAT(again.err, HasSubstr("p.tar: already exists; replace it with --force"));
  EXPECT_EQ(shell("cd project; $A pack top -o ../p.tar --force").exit_code, 0);
  shell("mkdir full; echo mine > full/file");
  const auto refused = shell("$A unpack p.tar --directory full");
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.err, HasSubstr("full: is not an empty folder"));
  EXPECT_EQ(content("full/file"), "mine\n");
  EXPECT_THAT(shell("cd project; $A pack nothing").err, HasSubstr("neither a run nor a file"));
  EXPECT_THAT(shell("$A unpack nothing.tar").err, StartsWith("assay: "));
}

// Packs that were tampered with, by Python's own tar.
TEST_F(Pack, HostilePacksAreRefusedByOneLine) {
  make_pack();
  std::ofstream(directory_.path() / "evil.py") << R"(
import io, json, sys, tarfile
members = {}
with tarfile.open("p.tar") as tar:
    names = tar.getnames()
    for name in names: members[name] = tar.extractfile(name).read()
m = json.loads(members["manifest.json"])
content = [n for n in names if n.startswith("contents/")][0]
extra, raw = [], None
def regular(name, data):
    info = tarfile.TarInfo(name); info.size = len(data)
    extra.append((info, data))
def special(name, kind, link=""):
    info = tarfile.TarInfo(name); info.type = kind; info.linkname = link
    extra.append((info, b""))
how = sys.argv[1]
run = m["runs"][0]
if how == "dotdot": run["inputs"][0]["path"] = m["project"] + "/../../../etc/x"
elif how == "relative": run["inputs"][0]["path"] = "etc/x"
elif how == "git": run["inputs"][0]["path"] = m["project"] + "/.git/hooks/post-checkout"
elif how == "store": run["inputs"][0]["path"] = m["project"] + "/.assay/assay.db"
elif how == "directory": run["directory"] = "/a/../../b"
elif how == "redirect": run["redirects"] = ["1>/a/../../b"]
elif how == "nul": run["command"] = ["sh", "a\0b"]
elif how == "no-command": run["command"] = []
elif how == "uid": run["uid"] = "../../../../x"
elif how == "same-uid": m["runs"][1]["uid"] = run["uid"]
elif how == "secret":
    same = [i for i in run["inputs"] if i["path"].endswith("/raw")][0]
    run["inputs"].append({**same, "path": m["project"] + "/.env"})
    m["left_out"].append({"path": m["project"] + "/.env", "why": "its name"})
elif how == "name": run["name"] = "../x"
elif how == "number": run["inputs"] = 5
elif how == "huge": m["contents"][0]["size"] = 1 << 60
elif how == "overflow":
    for c in m["contents"]: c["size"] = (1 << 63) - 1
elif how == "negative": m["contents"][0]["size"] = -5
elif how == "unlisted": del m["contents"][0]
elif how == "missing": del members[content]
elif how == "damaged": members[content] = b"x" * len(members[content])
elif how == "version": m["version"] = 99
elif how == "other": m = {"hello": 1}
elif how == "deep": raw = b"[" * 200000
elif how == "member-dotdot": regular("contents/../../x", b"1")
elif how == "member-absolute": regular("/tmp/assay-evil", b"1")
elif how == "twice": regular(content, members[content])
elif how == "symlink": special("contents/link", tarfile.SYMTYPE, "/etc/passwd")
elif how == "hardlink": special("contents/link", tarfile.LNKTYPE, "/etc/passwd")
elif how == "device": special("contents/null", tarfile.CHRTYPE)
elif how == "folder": special("contents", tarfile.DIRTYPE)
members["manifest.json"] = raw or json.dumps(m).encode()
with tarfile.open("evil.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    for name in names:
        if name not in members: continue
        info = tarfile.TarInfo(name); info.size = len(members[name])
        tar.addfile(info, io.BytesIO(members[name]))
    for info, data in extra: tar.addfile(info, io.BytesIO(data))
)";
  const auto refused = [&](const std::string& what, int code) {
    const auto outcome = shell("$A unpack evil.tar --directory victim");
    EXPECT_EQ(outcome.exit_code, code) << what << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("evil.tar: ")) << what;
    EXPECT_FALSE(fs::exists(directory_.path() / "victim")) << what;
  };
  for (const char* what : {"dotdot",          "relative", "git",        "store",    "directory",
                           "redirect",        "nul",      "no-command", "uid",      "name",
                           "number",          "overflow", "negative",   "unlisted", "missing",
                           "damaged",         "version",  "other",      "deep",     "member-dotdot",
                           "member-absolute", "twice",    "symlink",    "hardlink", "device",
                           "folder",          "same-uid"}) {
    ASSERT_EQ(shell(std::string("python3 evil.py ") + what).exit_code, 0) << what;
    refused(what, 64);
  }
  shell("python3 evil.py huge");
  refused("huge", 3);
  for (const char* make :
       {"head -c 700 p.tar > evil.tar", "head -c 5000 /dev/urandom > evil.tar", ": > evil.tar",
        "zstd -qf p.tar -o p.zst; head -c 100 p.zst > evil.tar"}) {
    shell(make);
    refused(make, 64);
  }
  shell("python3 evil.py nothing");
  EXPECT_EQ(shell("$A unpack evil.tar --directory victim").exit_code, 0) << "the script is right";
  // A content that was left out under one name is not placed under another either.
  EXPECT_TRUE(fs::exists(directory_.path() / "victim/raw"));
  shell("python3 evil.py secret");
  EXPECT_EQ(shell("$A unpack evil.tar --directory secret").exit_code, 0);
  EXPECT_TRUE(fs::exists(directory_.path() / "secret/by.sh"));
  EXPECT_FALSE(fs::exists(directory_.path() / "secret/.env"));
  EXPECT_FALSE(fs::exists(directory_.path() / "secret/raw"));
}

// The packages are not in the pack, but their versions are. No network: pip finds a wheel here.
TEST_F(Pack, AVirtualEnvironmentIsMadeAgain) {
  if (shell("python3 -c 'import venv, ensurepip'").exit_code != 0) {
    GTEST_SKIP() << "python3 has no venv with pip";
  }
  const auto made = shell(R"sh(
    mkdir -p i/tinyadd-1.2.3.dist-info wheels; cd i
    echo 'def add(a, b): return a + b' > tinyadd.py; cd tinyadd-1.2.3.dist-info
    printf 'Metadata-Version: 2.1\nName: tinyadd\nVersion: 1.2.3\n' > METADATA
    printf 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > WHEEL
    printf 'tinyadd.py,,\ntinyadd-1.2.3.dist-info/METADATA,,\ntinyadd-1.2.3.dist-info/RECORD,,\n' > RECORD
    cd ..; python3 -m zipfile -c ../wheels/tinyadd-1.2.3-py3-none-any.whl tinyadd.py tinyadd-1.2.3.dist-info
    cd ../project; python3 -m venv --without-pip .venv; cp -r ../i/* .venv/lib/python3*/site-packages
    echo 'import tinyadd; open("out", "w").write(f"{tinyadd.add(1, 2)}\n")' > t.py
    $A run -- .venv/bin/python t.py && $A pack out -o ../p.tar && cd .. && rm -r project &&
    $A unpack p.tar --directory new)sh");
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  const auto told = shell("cd new; $A reproduce out --run --directory ../none");
  EXPECT_EQ(told.exit_code, 2);
  EXPECT_THAT(told.out, HasSubstr("/new/.venv is not here, and no recorded run makes it; "
                                  "--make-environments makes it, with 1 package of"));
  EXPECT_THAT(shell("cd new; $A reproduce out").out,
              HasSubstr("next: assay reproduce out --run --make-environments\n"));
  // Nothing is left of one that cannot be made.
  const auto failed = shell(
      "cd new; mkdir ../empty; PIP_NO_INDEX=1 PIP_FIND_LINKS=../empty $A reproduce out "
      "--run --make-environments");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("tinyadd==1.2.3; make it by hand"));
  EXPECT_FALSE(fs::exists(directory_.path() / "new/.venv"));
  const auto done = shell(
      "cd new; PIP_NO_INDEX=1 PIP_FIND_LINKS=../wheels $A reproduce out --run --directory ../copy "
      "--make-environments");
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_THAT(done.err, HasSubstr("/new/.venv with tinyadd==1.2.3\n"));
  EXPECT_THAT(done.out, HasSubstr("reproduced: "));
}

}  // namespace
}  // namespace assay
