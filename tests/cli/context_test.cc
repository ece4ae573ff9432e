// What a run depends on besides its files: downloads, the network, interpreters, variables; and
// which of Assay's own verbs are runs.
#include "cli/scripted_project.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;

class Downloads : public ScriptedProject {};

TEST_F(Downloads, ModelsInCachesAreInputsAndTokensAreNot) {
  done(
      "mkdir -p home/.cache/huggingface/hub/models--a--b/blobs"
      " home/.cache/huggingface/hub/models--a--b/snapshots/rev1 home/.cache/other p &&"
      " echo w > home/.cache/huggingface/hub/models--a--b/blobs/1234 &&"
      " ln -s ../../blobs/1234 home/.cache/huggingface/hub/models--a--b/snapshots/rev1/w.bin &&"
      " echo t > home/.cache/huggingface/token && echo o > home/.cache/other/x");
  const std::string cd = "cd p && export HOME=$PWD/../home && ";
  done(cd +
       "$ASSAY init >/dev/null && $ASSAY run -- sh -c 'C=$HOME/.cache/huggingface;"
       " cat $C/token $C/../other/x $C/hub/models--a--b/snapshots/rev1/w.bin > out'");
  const Json run = Json::parse(done(cd + "$ASSAY show last --json").out);
  ASSERT_EQ(run["inputs"].size(), 1U) << run["inputs"];
  EXPECT_THAT(run["inputs"][0]["path"].get<std::string>(), HasSubstr("models--a--b/blobs/1234"));
  EXPECT_THAT(run["links"].dump(), HasSubstr("snapshots/rev1/w.bin"));
  // A download is no output: reproducing the run would not write it.
  done(cd +
       "$ASSAY run -- sh -c 'echo v > $HOME/.cache/huggingface/hub/models--a--b/blobs/55; echo 1 > "
       "out'");
  const Json second = Json::parse(done(cd + "$ASSAY show last --json").out);
  EXPECT_EQ(second["outputs"].size(), 1U);
  ASSERT_EQ(second["inputs"].size(), 1U);
  EXPECT_THAT(second["inputs"][0]["path"].get<std::string>(), HasSubstr("blobs/55"));
}

TEST_F(Downloads, TheNetworkIsNamed) {
  // No packet leaves the machine: a datagram socket has an address without sending anything.
  write("net.py",
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "try:\n  s.connect(('192.0.2.7', 443))\nexcept OSError:\n  print('none')\n"
        "l = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nl.connect(('127.0.0.1', 80))\n"
        "open('out', 'w').write('1')\n");
  const auto ran = done("$ASSAY run --json -- python3 net.py");
  if (ran.out == "none\n") GTEST_SKIP() << "this machine has no route to anywhere";
  EXPECT_THAT(ran.err, HasSubstr("\"network\":true"));
  EXPECT_EQ(json("show last")["network"], Json({"192.0.2.7:443"}));
  EXPECT_THAT(done("$ASSAY show last").out, HasSubstr("the data it received was not recorded"));
  EXPECT_THAT(json("reproduce out")["notes"].dump(), HasSubstr("used the network"));
  EXPECT_THAT(done("$ASSAY run --json -- true").err, HasSubstr("\"network\":false"));
}

// Between two sockets of this machine, which has another machine's address for the time.
TEST_F(Downloads, BytesAreCountedOfTcpConnections) {
  const std::string alone =
      "unshare -n sh -c 'ip link set lo up && ip addr add 192.0.2.7/32 dev lo";
  if (shell(alone + "'").exit_code != 0) GTEST_SKIP() << "no network namespaces";
  write("net.py",
        "import os, socket\n"
        "server = socket.create_server(('192.0.2.7', 4430))\n"
        "def exchange(close):\n"
        "  s = socket.create_connection(('192.0.2.7', 4430))\n"
        "  c, _ = server.accept()\n"
        "  s.sendall(b'q' * 10)\n"
        "  assert c.recv(10, socket.MSG_WAITALL)\n"
        "  c.sendall(b'a' * 70000)\n"
        "  assert len(s.recv(70000, socket.MSG_WAITALL)) == 70000\n"
        "  if close: s.close()\n"
        "  return s, c\n"
        "exchange(True)\n"
        "left = exchange(False)\n"  // open when the program ends
        "open('out', 'w').write('1')\n");
  done(alone + " && exec \"$0\" run -- python3 net.py' $ASSAY");
  const Json run = json("show last");
  ASSERT_EQ(run["traffic"].size(), 1U) << run["network"];
  EXPECT_EQ(run["traffic"][0]["address"], "192.0.2.7:4430");
  // The kernel counts the end of a connection as a byte.
  EXPECT_GE(run["traffic"][0]["received_bytes"], 140000);
  EXPECT_LE(run["traffic"][0]["received_bytes"], 140002);
  EXPECT_EQ(run["traffic"][0]["sent_bytes"], 20);
  EXPECT_THAT(done("$ASSAY show last").out, HasSubstr("192.0.2.7:4430 (137 KiB in, 20 B out)"));
}

class Context : public ScriptedProject {
 protected:
  // Two interpreters, as far as their names tell: copies of the shell under Python's name, of which
  // one has a text that reads as its version.
  void SetUp() override {
    done(
        "mkdir bin && cp \"$(readlink -f /bin/sh)\" bin/python3.11 &&"
        " cp bin/python3.11 bin/python3.12 && printf '\\0003.11.4\\000' >> bin/python3.11 &&"
        " printf '\\0003.12.1\\000' >> bin/python3.12 && ln -s python3.11 bin/python3");
  }
};

TEST_F(Context, InterpretersBehindOneLinkDiffer) {
  done("$ASSAY run --leave-out bin/ -- bin/python3 -c 'echo 1 > out'");
  const Json first = json("show last")["interpreters"];
  ASSERT_EQ(first.size(), 1U) << first;
  EXPECT_EQ(first[0]["started"], (project_.path() / "bin/python3").string());
  EXPECT_EQ(first[0]["path"], (project_.path() / "bin/python3.11").string());
  EXPECT_EQ(first[0]["version"], "3.11.4");
  EXPECT_EQ(first[0]["build"].get<std::string>().size(), 16U);
  EXPECT_THAT(done("$ASSAY status").out, HasSubstr("fresh"));
  done("ln -sf python3.12 bin/python3");
  EXPECT_THAT(shell("$ASSAY status").out,
              HasSubstr("interpreter bin/python3 is python 3.12.1 now, and was python 3.11.4"));
  EXPECT_EQ(json("status")["stages"][0]["reasons"][0]["cause"], "interpreter-changed");
  EXPECT_THAT(json("reproduce out")["differences"].dump(), HasSubstr("python 3.12.1"));
  done("$ASSAY run @1");
  EXPECT_THAT(shell("$ASSAY diff 1 2").out, HasSubstr("python 3.12.1"));
  EXPECT_THAT(done("$ASSAY status").out, HasSubstr("fresh"));
}

// Of most languages the version is not in the file.
TEST_F(Context, AnotherBuildOfAnUnknownVersionIsAnotherInterpreter) {
  done(
      "cp \"$(readlink -f /bin/sh)\" bin/node; $ASSAY run --leave-out bin/ -- bin/node -c "
      "'echo 1 > out'");
  const Json first = json("show last")["interpreters"];
  ASSERT_EQ(first.size(), 1U) << first;
  EXPECT_EQ(first[0]["version"], "");
  done("cp bin/node copy; mv copy bin/node");
  EXPECT_THAT(done("$ASSAY status").out, HasSubstr("fresh")) << "the same build";
  done("cp \"$(readlink -f /bin/bash)\" bin/node");
  const auto status = shell("$ASSAY status");
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.out, HasSubstr("interpreter bin/node is node, build "));
  EXPECT_THAT(status.out, HasSubstr(first[0]["build"].get<std::string>()));
}

// Its file is read when the run has ended.
TEST_F(Context, AnInterpreterThatWasReplacedMeanwhileIsNotGuessed) {
  done(
      "$ASSAY run --leave-out bin/ -- sh -c 'bin/python3.11 -c \"echo 1 > out\"; sleep 0.02; "
      "cp bin/python3.12 bin/new; mv bin/new bin/python3.11'");
  Json run = json("show last");
  EXPECT_EQ(run["interpreters"].size(), 0U) << run["interpreters"];
  ASSERT_EQ(run["missed"].size(), 1U) << run["missed"];
  EXPECT_EQ(run["missed"][0]["what"], "interpreter");
  EXPECT_THAT(run["missed"][0]["text"].get<std::string>(), HasSubstr("bin/python3.11"));
  EXPECT_EQ(run["run"]["complete"], true) << "all files are known";
  // One that the run itself makes and then uses.
  done(
      "$ASSAY run --leave-out bin/ -- sh -c 'cp bin/python3.12 bin/node2; sleep 0.02; "
      "bin/node2 -c \"echo 1 > out\"; :'");
  run = json("show last");
  EXPECT_EQ(run["interpreters"].size(), 1U) << run["interpreters"];
  EXPECT_EQ(run["missed"].size(), 0U) << run["missed"];
}

// By an oracle: the interpreter itself says what it is.
TEST_F(Context, ARealPythonAndAScriptThatNamesIt) {
  const std::string python =
      done("python3 -c 'import os,sys; print(os.path.realpath(sys.executable), end=\"\")'").out;
  const std::string version = done(
                                  "python3 -c 'import platform; "
                                  "print(platform.python_version(), end=\"\")'")
                                  .out;
  write("script", "#!" + python + "\nopen('out', 'w').write('1')\n");
  done("chmod +x script && $ASSAY run -- ./script");
  const Json found = json("show last")["interpreters"];
  ASSERT_EQ(found.size(), 1U) << found;
  EXPECT_EQ(found[0]["path"], python);
  EXPECT_EQ(found[0]["version"], version);
  EXPECT_EQ(found[0]["language"], "python");
}

TEST_F(Context, VariablesThatChangeResultsAreShownAndCompared) {
  done(
      "PYTHONHASHSEED=7 HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzabcdef $ASSAY run -- "
      "sh -c 'echo 1 > out'");
  const auto shown = done("$ASSAY show last").out;
  EXPECT_THAT(shown, HasSubstr("PYTHONHASHSEED"));
  EXPECT_THAT(shown, HasSubstr("[redacted]"));
  EXPECT_THAT(shown, Not(HasSubstr("hf_abcdef")));
  const auto status = done("$ASSAY status");
  EXPECT_THAT(status.out, HasSubstr("note: stage 1 ran with PYTHONHASHSEED 7; here it is not set"));
  EXPECT_THAT(status.out, Not(HasSubstr("HF_TOKEN")));
  EXPECT_EQ(json("status")["stages"][0]["variables"][0]["name"], "PYTHONHASHSEED");
  EXPECT_THAT(done("PYTHONHASHSEED=7 $ASSAY status").out, Not(HasSubstr("note:")));
}

TEST_F(Context, VerbsThatMakeFilesAreRecorded) {
  done("$ASSAY data synth -o tiny.tokens --tokens 1e4 --vocab 64 --quiet");
  EXPECT_NE(shell("$ASSAY log").exit_code, 0) << "nobody asked for a project";
  done("$ASSAY init -q; $ASSAY data synth -o tiny.tokens --tokens 1e4 --vocab 64 --quiet");
  const Json made = json("show last");
  EXPECT_EQ(made["outputs"].size(), 1U) << made["outputs"];
  EXPECT_THAT(made["run"]["command"].get<std::string>(), HasSubstr("data synth -o tiny.tokens"));
  EXPECT_THAT(done("$ASSAY lineage tiny.tokens").out, HasSubstr("data synth"));
  done("$ASSAY data info tiny.tokens");
  EXPECT_EQ(json("log")["runs"].size(), 1U) << "which makes no file";
  // Inside another run it is a part of that.
  done("$ASSAY run -- sh -c \"$ASSAY data synth -o more.tokens --tokens 1e4 --vocab 64 --quiet\"");
  EXPECT_EQ(json("log")["runs"].size(), 2U);
  // A report is made by a run, and is not the run that `last` means.
  done("$ASSAY report --quiet && $ASSAY report --quiet");
  EXPECT_THAT(done("$ASSAY lineage report.html").out, HasSubstr(" report "));
  EXPECT_EQ(json("show last")["run"]["id"], 2);
  EXPECT_EQ(json("log")["runs"].size(), 4U);
  EXPECT_EQ(json("reproduce tiny.tokens --run --directory copy")["verdict"], "identical");
}

// The password of a client is in its own arguments, in the script that calls it, and in the list of
// processes; it gets into none of the files.
class Secrets : public ScriptedProject {};
TEST_F(Secrets, PasswordsOfKnownClientsAreNowhere) {
  done(
      "mkdir -p p/bin && for c in mysql sshpass redis-cli lftp; do printf '#!/bin/sh\\ntrue\\n' > "
      "p/bin/$c; done && chmod +x p/bin/*");
  done(
      "cd p && $ASSAY init >/dev/null && PATH=$PWD/bin:$PATH && "
      "$ASSAY run -- mysql -uroot -ppa55w0rdX db && $ASSAY run -- sshpass -p pa55w0rdX ssh h && "
      "$ASSAY run -- sh -c 'redis-cli -h h -a pa55w0rdX ping > out; lftp -u me,pa55w0rdX h' && "
      "$ASSAY export out --format ro-crate -o crate && $ASSAY export out --format prov -o "
      "prov.json "
      "&& $ASSAY report last -o r.html && $ASSAY pack out -o p.tar");
  EXPECT_EQ(shell("cd p && grep -rl pa55w0rdX . .assay").out, "");
  EXPECT_THAT(done("cd p && $ASSAY show last --json").out, HasSubstr("-a [redacted] ping"));
}

}  // namespace
}  // namespace assay
