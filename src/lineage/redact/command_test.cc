// Tables of what must be redacted and what must not. The secrets are made up; none was ever valid.
#include "lineage/redact/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lineage/redact/secret_name.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Arguments = std::vector<std::string>;

// Assembled at run time, so that secret scanners do not report this file.
const std::string kGithub = std::string("ghp") + "_16C7e42F292c6912E7710c838347Ae178B4a";
const std::string kAws = std::string("AKIA") + "IOSFODNN7EXAMPLE";
const std::string kAwsSecret = std::string("wJalrXUtnFEMI/K7MDENG/") + "bPxRfiCYEXAMPLEKEY12";
const std::string kWebToken = std::string("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.") +
                              "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9";
const std::string kPem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----";

struct Variable {
  std::string name, value;
};

TEST(RedactedEnvironment, HidesByName) {
  for (const Variable& secret :
       std::vector<Variable>{{"TOKEN", "abc"},
                             {"GITHUB_TOKEN", "x"},
                             {"HF_TOKEN", "abc"},
                             {"MY_SECRET", "abc"},
                             {"SECRET_THING", "abc"},
                             {"API_KEY", "changeme"},
                             {"OPENAI_API_KEY", "abc"},
                             {"WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"},
                             {"KEY", "abcdef"},
                             {"AWS_SECRET_ACCESS_KEY", "abc"},
                             {"AWS_ACCESS_KEY_ID", "abc"},
                             {"AWS_SESSION_TOKEN", "abc"},
                             {"PASSWORD", "12345"},
                             {"DB_PASSWORD", "true"},
                             {"PGPASSWORD", "abc"},
                             {"MYSQL_PWD", "abc"},
                             {"DB_PASS", "hunter"},
                             {"SSHPASS", "abc"},
                             {"passwd", "abc"},
                             {"LDAP_PASSWD", "abc"},
                             {"CREDENTIALS", "abc"},
                             {"GOOGLE_APPLICATION_CREDENTIALS", "{}"},
                             {"HTTP_AUTH", "abc"},
                             {"COOKIE", "abc"},
                             {"SESSION", "abc"},
                             {"SESSION_ID", "abcdef"},
                             {"PRIVATE_KEY", "abc"},
                             {"SENTRY_DSN", "https://abc@sentry.example/1"},
                             {"npm_config__authToken", "abc"},
                             {"apiKey", "abc"},
                             {"APIKey2", "abc"},
                             {"APIKEY", "abc"},
                             {"my.secret-name.x", "abc"},
                             {"GPG_PASSPHRASE", "abc def"},
                             {"JWT", "abc"},
                             {"GHTOKEN", "abc"}}) {
    EXPECT_EQ(redact_value(secret.name, secret.value), kRedacted) << secret.name;
  }
}

TEST(RedactedEnvironment, KeepsWhatIsNoSecret) {
  const std::string commit = "9f8eb45c0ffee0123456789abcdef0123456789a";
  for (const Variable& plain : std::vector<Variable>{
           {"PATH",
            "/usr/local/cuda-12.4/bin:/usr/local/sbin:/home/u/.local/bin:/opt/K3y5A1b2C3d4"},
           {"HOME", "/home/u"},
           {"PWD", "/work/x"},
           {"OLDPWD", "/work"},
           {"BUILD_PWD", "/work"},
           {"SSH_AUTH_SOCK", "/tmp/ssh-XXXXabc123/agent.42"},
           {"SSH_ASKPASS", "/usr/bin/askpass"},
           {"XDG_SESSION_ID", "c2"},
           {"XDG_SESSION_TYPE", "wayland"},
           {"DESKTOP_SESSION", "gnome"},
           {"DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"},
           {"KEYMAP", "de"},
           {"KEYBOARD", "us"},
           {"MONKEY", "see"},
           {"TOKENIZERS_PARALLELISM", "false"},
           {"MAX_TOKENS", "4096"},
           {"EOS_TOKEN", "</s>"},
           {"NUM_KEY_VALUE_HEADS", "8"},
           {"GIT_COMMIT", commit},
           {"IMAGE", "sha256:" + commit + commit.substr(0, 24)},
           {"GIT_AUTHOR_NAME", "A. Person"},
           {"GIT_AUTHOR_EMAIL", "a.person@example.org"},
           {"BUILD_UUID", "123e4567-e89b-12d3-a456-426614174000"},
           {"LD_LIBRARY_PATH", "/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu"},
           {"CUDA_HOME", "/usr/local/cuda-12.4"},
           {"CUDA_VISIBLE_DEVICES", "0,1,2,3"},
           {"NVIDIA_REQUIRE_CUDA", "cuda>=12.4 brand=tesla,driver>=470,driver<471"},
           {"NV_LIBNCCL_PACKAGE", "libnccl2=2.21.5-1+cuda12.4"},
           {"NVIDIA_VISIBLE_DEVICES", "GPU-8f6c5e7a-1b2c-3d4e-5f60-718293a4b5c6"},
           {"NIX", "/nix/store/0c3z9q5m8v2w7x1y4b6d8f0h2j4l6n8p-python3-3.11.7/bin"},
           {"POSTGRES_PASSWORD_FILE", "/run/secrets/db"},
           {"SSH_PUBLIC_KEY", "ssh-ed25519"},
           {"LS_COLORS", "rs=0:di=01;34:ln=01;36:*.tar=01;31:*.key=00;32"},
           {"LANG", "C.UTF-8"},
           {"CFLAGS", "-O2 -g -fdebug-prefix-map=/build/x=. -DKEY_LENGTH=16"},
           {"EMPTY_TOKEN", ""},
           {"HF_HOME", "/data/hf_transfer_workers_directory"},
           {"TERM", "xterm-256color"},
           {"PS1", "\\u@\\h:\\w\\$ "},
           {"URL", "https://example.org:8080/a/b?page=2&sort=key"},
           {"no_proxy", "localhost,127.0.0.1"},
           {"http_proxy", "http://proxy.example.org:3128"},
           {"CONDA_PROMPT_MODIFIER", "(base) "},
           {"SLURM_JOB_NODELIST", "gpu[001-004]"},
           {"HOSTNAME", "ip-10-0-12-34.eu-central-1.compute.internal"},
           {"MODEL", "meta-llama/Meta-Llama-3.1-8B-Instruct-Q4_K_M"},
           {"WHEEL", "torch-2.4.0+cu124-cp311-cp311-linux_x86_64.whl"}}) {
    EXPECT_EQ(redact_value(plain.name, plain.value), plain.value) << plain.name;
  }
}

TEST(RedactedEnvironment, HidesByShape) {
  const std::string hidden(kRedacted);
  struct Case {
    std::string value, expected;
  };
  for (const Case& c : std::vector<Case>{
           {kGithub, hidden},
           {kAws, hidden},
           {kAwsSecret, hidden},
           {kWebToken, hidden},
           {"a " + kWebToken + " b", "a " + hidden + " b"},
           {kPem, hidden},
           {"x" + kPem + "y", "x" + hidden + "y"},
           {"-----BEGIN OPENSSH PRIVATE KEY-----\nabc", hidden},
           {"github_pat" + std::string("_11ABCDEFG0abcdefghijkl_mnopqrstuv"), hidden},
           {std::string("sk") + "-proj-abcdefGHIJKL0123456789", hidden},
           {std::string("xoxb") + "-123456789012-abcdefGHIJ", hidden},
           {std::string("glpat") + "-abcDEF123456ghiJKL78", hidden},
           {std::string("hf") + "_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", hidden},
           {"https://me:hunter2@example.org/x", "https://me:" + hidden + "@example.org/x"},
           {"postgres://u:p%40ss@db:5432/x?a=b", "postgres://u:" + hidden + "@db:5432/x?a=b"},
           {"redis://:pw@host", "redis://:" + hidden + "@host"},
           {"http://u:pa/ss@host/", "http://u:" + hidden + "@host/"},
           {"https://" + kGithub + "@github.com/x", "https://" + hidden + "@github.com/x"},
           {"host=db user=me password=hunter2 port=1",
            "host=db user=me password=" + hidden + " port=1"},
           {"Server=db;Password=hunter2;Port=1", "Server=db;Password=" + hidden + ";Port=1"},
           {"https://h/?access_token=abc&x=1", "https://h/?access_token=" + hidden + "&x=1"},
           {"{\"token\": \"abc\", \"n\": 1}", "{\"token\": \"" + hidden + "\", \"n\": 1}"},
           {"Zm9vYmFyMTIzNDU2Nzg5MEFCQ0RFRkdISUpLTE1OT1A=", hidden},
           {"q8Zr2Lx7Vb4Nt9Wk3Hs6Yd1Fg5", hidden}}) {
    EXPECT_EQ(redact_value("HARMLESS", c.value), c.expected) << c.value;
  }
}

TEST(RedactedEnvironment, LeavesOutOurOwn) {
  const auto kept = redact_environment(
      Arguments{"A=1", "ASSAY_LOG=/x", "LD_PRELOAD=/opt/libassay_shim.so:/usr/lib/libjemalloc.so",
                "A=2", "=odd", "nothing", "EMPTY="});
  EXPECT_THAT(kept, ElementsAre(Pair("A", "1"), Pair("EMPTY", ""),
                                Pair("LD_PRELOAD", "/usr/lib/libjemalloc.so")));
  EXPECT_TRUE(redact_environment(Arguments{"LD_PRELOAD=/opt/libassay_shim.so"}).empty());
}

TEST(RedactedArguments, HidesSecrets) {
  const std::string hidden(kRedacted);
  struct Case {
    Arguments arguments, expected;
  };
  for (const Case& c : std::vector<Case>{
           {{"x", "--token=abc"}, {"x", "--token=" + hidden}},
           {{"x", "--token", "abc", "rest"}, {"x", "--token", hidden, "rest"}},
           {{"x", "--password", "two words"}, {"x", "--password", hidden}},
           {{"x", "--password=two words"}, {"x", "--password=" + hidden}},
           {{"x", "-password", "abc"}, {"x", "-password", hidden}},
           {{"env", "GITHUB_TOKEN=abc", "x"}, {"env", "GITHUB_TOKEN=" + hidden, "x"}},
           {{"x", "--api-key", "k3y"}, {"x", "--api-key", hidden}},
           {{"x", "--key", "s3cr3t-k3y"}, {"x", "--key", hidden}},
           {{"curl", "-u", "me:pw", "-H", "Authorization: Bearer abc"},
            {"curl", "-u", "me:" + hidden, "-H", "Authorization: " + hidden}},
           {{"/usr/bin/curl", "-ume:pw"}, {"/usr/bin/curl", "-ume:" + hidden}},
           {{"curl", "-H", "X-Api-Key: abc"}, {"curl", "-H", "X-Api-Key: " + hidden}},
           {{"curl", "--user=me:pw"}, {"curl", "--user=me:" + hidden}},
           {{"sshpass", "-p", "pw", "ssh"}, {"sshpass", "-p", hidden, "ssh"}},
           {{"mysql", "-ppw", "db"}, {"mysql", "-p" + hidden, "db"}},
           {{"git", "clone", "https://u:pw@h/x"}, {"git", "clone", "https://u:" + hidden + "@h/x"}},
           {{"sh", "-c", "curl --token abc x | y"},
            {"sh", "-c", "curl --token " + hidden + " x | y"}},
           {{"sh", "-c", "PASSWORD='a b' run 'x y'"},
            {"sh", "-c", "PASSWORD=" + hidden + " run 'x y'"}},
           {{"sh", "-c", "x --password \"a b\""}, {"sh", "-c", "x --password \"" + hidden + "\""}},
           {{"x", kGithub}, {"x", hidden}},
           {{"x", "--data={\"password\":\"abc\"}"},
            {"x", "--data={\"password\":\"" + hidden + "\"}"}}}) {
    EXPECT_EQ(redact_arguments(c.arguments), c.expected) << c.arguments.back();
    EXPECT_TRUE(is_redacted(redact_arguments(c.arguments).back()) ||
                is_redacted(redact_arguments(c.arguments)[c.arguments.size() - 2]));
  }
}

TEST(RedactedArguments, KeepsOtherArguments) {
  for (const Arguments& arguments : std::vector<Arguments>{
           {"python3", "train.py", "--max-tokens", "4096", "--max-tokens=4096"},
           {"sort", "--key", "2,2", "--key=name", "-k1"},
           {"train", "--tokenizer", "meta-llama/Llama-3", "--eos-token", "</s>", "--lr=3e-4"},
           {"x", "--key-file", "server1.key", "--auth", "basic", "--session", "main"},
           {"x", "--use-auth-token", "train.py"},
           {"docker", "run", "-u", "1000:1000", "--rm", "-p", "8080:80"},
           {"sh", "-c", "for i in 1 2; do cat  \"$i\" | sort -k2 > 'out $i'; done\n"},
           {"sh", "-c", "x --token \"$TOKEN\" --password $(cat p)"},
           {"python3", "-c", "print(sorted(x, key=len)); d['token'] = 1"},
           {"git", "checkout", "9f8eb45c0ffee0123456789abcdef0123456789a"},
           {"cc", "-DKEY=value", "-I/usr/include", "-o", "a.out", "monkey.c"},
           {"ssh", "git@example.org"},
           {"x", ""},
           {"x", "a  b "},
           {"awk", "{print $1}"},
           {"tar", "xf", "torch-2.4.0+cu124-cp311-cp311-linux_x86_64.whl"},
           {}}) {
    EXPECT_EQ(redact_arguments(arguments), arguments);
  }
}

TEST(SecretName, TruthsAndNumbers) {
  for (const char* value : {"", "1", "true", "off", "3.5", "1e-4", "0,1,2", "-1"}) {
    EXPECT_TRUE(is_number_or_bool(value)) << value;
  }
  for (const char* value : {"abc", "4111111111111111", "e", "1a", "0x1f"}) {
    EXPECT_FALSE(is_number_or_bool(value)) << value;
  }
}

// Whatever the bytes: nothing crashes, and a secret named as one never comes through.
RC_GTEST_PROP(RedactedArguments, NamedSecretNeverComesThrough, (const std::string& noise)) {
  const std::string secret = "hunter2hunter2";
  const Arguments arguments = {noise, "--password", secret, "PASSWORD=" + secret, noise + noise};
  for (const std::string& argument : redact_arguments(arguments))
    RC_ASSERT(argument.find(secret) == argument.npos);
  RC_ASSERT(redact_value("X_TOKEN_" + std::string("Y"), secret) == kRedacted);
  RC_ASSERT(redact_arguments(arguments).size() == arguments.size());
}

// Random base62 of 40 characters is seen nearly always; the rest would have to be a fluke.
TEST(SecretShape, RandomStringsAreSeen) {
  int seen = 0;
  std::uint64_t state = 1;
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (int j = 0; j < 40; ++j) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      text += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[(state >> 33) % 62];
    }
    seen += looks_random(text) ? 1 : 0;
  }
  EXPECT_GE(seen, 980);
}

TEST(JoinedArguments, AreRedactedAlike) {
  using namespace std::string_literals;
  EXPECT_EQ(redact_joined_arguments("tool\0--password\0hunter2\0--token=abc\0last"s),
            "tool\0--password\0[redacted]\0--token=[redacted]\0last"s);
  EXPECT_EQ(redact_joined_arguments("a\0\0b\0"s), "a\0\0b\0"s) << "empty arguments stay";
  EXPECT_EQ(redact_joined_arguments(""), "");
}

TEST(RedactedArguments, GapsThatWereFound) {
  const std::string kHook = std::string("https://hooks.slack.com/services/") + "T0/B0/abcXYZ";
  const std::string kSendGrid = std::string("SG.") + "abcdefghijklmnop12.qrstuvwxyzABCDEFGH34";
  for (const Arguments& arguments :
       std::vector<Arguments>{{"curl", "--header=Authorization: token QQX7"},
                              {"docker", "login", "-p", "QQX7"},
                              {"redis-cli", "-a", "QQX7", "ping"},
                              {"tool", "--pw", "QQX7"},
                              {"python", "-c", "token = \"QQX7\"; print(1)"},
                              {"python", "-c", "x=1; token = 'QQX7'"},
                              {"curl", "-d", "say Bearer QQX7aaaaaaaaaaaaaaaa"},
                              {"sh", "-c", "echo machine h login u password QQX7"},
                              {"curl", kHook + "QQX7"},
                              {"mail", kSendGrid + "QQX7"}}) {
    std::string all;
    for (const std::string& argument : redact_arguments(arguments)) all += argument + " ";
    EXPECT_THAT(all, Not(HasSubstr("QQX7")));
    EXPECT_THAT(all, HasSubstr("[redacted]"));
  }
  for (const Arguments& arguments :
       std::vector<Arguments>{{"docker", "run", "-p", "8080:80", "image"},
                              {"python", "-c", "token = get_token()"},
                              {"tool", "--bypass", "cache"},
                              {"redis-cli", "-h", "host"}}) {
    EXPECT_EQ(redact_arguments(arguments), arguments);
  }
}

// Options of known clients: as separate arguments, in a script, in a script for another machine.
TEST(RedactedArguments, OptionsOfClients) {
  for (const Arguments& arguments :
       std::vector<Arguments>{{"mysql", "-uroot", "-ppa55w0rdX", "db"},
                              {"/usr/bin/mysqldump", "-h", "db", "-ppa55w0rdX", "--all-databases"},
                              {"mariadb-dump", "-ppa55w0rdX"},
                              {"mysqladmin", "-u", "root", "-ppa55w0rdX", "status"},
                              {"mysqlsh", "-ppa55w0rdX"},
                              {"mycli", "-p", "pa55w0rdX"},
                              {"sshpass", "-p", "pa55w0rdX", "ssh", "h"},
                              {"sshpass", "-ppa55w0rdX", "ssh", "h"},
                              {"sshpass", "-vp", "pa55w0rdX", "scp", "a", "h:b"},
                              {"lftp", "-u", "me,pa55w0rdX", "h"},
                              {"lftp", "-e", "open -u me,pa55w0rdX h; get x"},
                              {"ncftpget", "-u", "me", "-p", "pa55w0rdX", "h", ".", "x"},
                              {"redis-cli", "-h", "h", "-a", "pa55w0rdX", "ping"},
                              {"redis-cli", "AUTH", "pa55w0rdX"},
                              {"redis-cli", "config", "set", "requirepass", "pa55w0rdX"},
                              {"mongo", "-u", "me", "-p", "pa55w0rdX"},
                              {"mongodump", "-ppa55w0rdX"},
                              {"curl", "-u", "me:pa55w0rdX", "u"},
                              {"curl", "-sSfu", "me:pa55w0rdX", "u"},
                              {"curl", "-sume:pa55w0rdX", "u"},
                              {"curl", "--proxy-user", "me:pa55w0rdX", "u"},
                              {"curl", "--cert", "me.pem:pa55w0rdX", "u"},
                              {"curl", "-b", "session=pa55w0rdX", "u"},
                              {"wget", "--user=me", "--password=pa55w0rdX", "u"},
                              {"wget", "--http-password", "pa55w0rdX", "u"},
                              {"http", "-a", "me:pa55w0rdX", "u"},
                              {"ldapsearch", "-x", "-D", "cn=me", "-w", "pa55w0rdX"},
                              {"ldappasswd", "-s", "pa55w0rdX"},
                              {"smbclient", "//h/s", "-U", "me%pa55w0rdX"},
                              {"smbclient", "//h/s", "--user=me%pa55w0rdX"},
                              {"openssl", "enc", "-aes-256-cbc", "-pass", "pass:pa55w0rdX"},
                              {"openssl", "rsa", "-passin", "pass:pa55w0rdX", "-in", "k"},
                              {"openssl", "enc", "-k", "pa55w0rdX"},
                              {"zip", "-P", "pa55w0rdX", "a.zip", "b"},
                              {"zip", "-rP", "pa55w0rdX", "a.zip", "b"},
                              {"unzip", "-Ppa55w0rdX", "a.zip"},
                              {"7z", "a", "-ppa55w0rdX", "a.7z", "b"},
                              {"rar", "a", "-hppa55w0rdX", "a.rar"},
                              {"sqlcmd", "-S", "h", "-U", "sa", "-P", "pa55w0rdX"},
                              {"sqlplus", "-s", "me/pa55w0rdX@db"},
                              {"mosquitto_pub", "-P", "pa55w0rdX", "-t", "x"},
                              {"snmpwalk", "-v3", "-A", "pa55w0rdX", "h"},
                              {"cqlsh", "-u", "me", "-p", "pa55w0rdX"},
                              {"xfreerdp", "/u:me", "/p:pa55w0rdX", "/v:h"},
                              {"nmcli", "dev", "wifi", "connect", "x", "password", "pa55w0rdX"},
                              {"docker", "login", "-u", "me", "-ppa55w0rdX"},
                              {"helm", "registry", "login", "-p", "pa55w0rdX"},
                              {"twine", "upload", "-p", "pa55w0rdX", "dist"},
                              {"aws", "configure", "set", "aws_secret_access_key", "pa55w0rdX"},
                              {"sudo", "-u", "me", "mysql", "-ppa55w0rdX"},
                              {"docker", "exec", "c", "mysql", "-ppa55w0rdX"},
                              {"timeout", "5", "redis-cli", "-a", "pa55w0rdX"},
                              {"python", "-c", "import os; os.system('mysql -ppa55w0rdX db')"},
                              {"python", "-c", "run(['mysql', '-ppa55w0rdX', 'db'])"}}) {
    std::string script;
    for (const std::string& argument : arguments) {
      const bool blank = argument.find(' ') != argument.npos;
      script += (script.empty() ? "" : " ") + (blank ? "\"" + argument + "\"" : argument);
    }
    for (const Arguments& form :
         {arguments, Arguments{"sh", "-c", script}, Arguments{"ssh", "h", script},
          Arguments{"bash", "-c", "set -e; x=1 " + script + " | tail -1; echo done"}}) {
      std::string all;
      for (const std::string& argument : redact_arguments(form)) all += argument + " ";
      EXPECT_THAT(all, Not(HasSubstr("pa55w0rdX")));
      EXPECT_THAT(all, HasSubstr("[redacted]"));
      if (form.front() == "bash") EXPECT_THAT(all, HasSubstr("tail -1; echo done"));
    }
  }
  for (const Arguments& arguments : std::vector<Arguments>{
           {"mysql", "-p", "db"},
           {"sshpass", "-e", "ssh", "-p", "22", "h"},
           {"sshpass", "-f", "file", "ssh", "-p", "22", "h"},
           {"docker", "run", "--name", "mongo", "-p", "27017:27017", "mongo"},
           {"docker", "run", "--name", "mysql", "-p", "127.0.0.1:3306:3306/tcp", "mysql"},
           {"mysql", "-p$MYSQL_PW", "db"},
           {"sh", "-c", "mysql -p\"$PW\" db; redis-cli -a \"$PW\" ping"},
           {"curl", "-sSfL", "-o", "x", "https://h/x"},
           {"curl", "-u", "me", "https://h/x"},
           {"mkdir", "-p", "a/b"},
           {"cp", "-p", "a", "b"},
           {"sh", "-c", "mkdir -p out && cp -p a out/"},
           {"7z", "a", "-p", "a.7z"},
           {"zip", "-r", "a.zip", "b"},
           {"openssl", "rsa", "-passin", "env:PW"},
           {"smbclient", "-U", "me", "//h/s"},
           {"sqlplus", "/nolog"},
           {"git", "config", "set", "user.name", "me"},
           {"python3", "tools/mysql/run.py", "-p", "5"}}) {
    EXPECT_EQ(redact_arguments(arguments), arguments);
  }
}

TEST(RedactedEnvironment, NamesWithoutSeparators) {
  for (const char* name :
       {"TS_AUTHKEY", "AUTHKEY", "PGPASS", "ROOTPASS", "USERPWD", "ENCRYPTKEY", "SASKEY"}) {
    EXPECT_EQ(redact_value(name, "abc"), kRedacted) << name;
  }
  for (const char* name : {"OLDPWD", "BYPASS", "COMPASS"}) {
    EXPECT_EQ(redact_value(name, "abc"), "abc") << name;
  }
}

}  // namespace
}  // namespace assay::lineage
