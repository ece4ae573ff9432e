#include "fresh/pipeline.h"

#include <fmt/format.h>

namespace assay::fresh {
namespace {

template <typename T>
const T& one_of(Random& random, const std::vector<T>& all) {
  return all[random() % all.size()];
}

const std::vector<std::string> kFolders = {"a", "b", "."};
const std::vector<std::string> kSources = {"a/1.txt", "a/2.txt", "b/x.csv", "b/1.txt", "s.txt"};
// Some are there at first, some are not.
const std::vector<std::string> kAsked = {"a/1.txt", "b/x.csv", "s.txt", "done",
                                         "c",       "cur",     "b",     "a/3.txt"};

// Where stage `number` leaves its result: in one of the folders that others list.
std::string result_of(std::size_t number, Random& random) {
  return fmt::format("{}o{}{}", one_of<std::string>(random, {"a/", "b/", ""}), number,
                     one_of<std::string>(random, {".txt", ".csv", ""}));
}

// A source, or what an earlier stage leaves.
std::string input_for(std::size_t number, Random& random, const std::vector<std::string>& results) {
  if (number > 1 && random() % 2 == 0) return one_of(random, results);
  return one_of(random, kSources);
}

}  // namespace

Pipeline random_pipeline(Random& random) {
  Pipeline made;
  made.setup =
      "mkdir -p a b; echo one > a/1.txt; echo two > a/2.txt; echo x > b/x.csv; echo b > b/1.txt; "
      "echo source > s.txt; echo 2 > n; ln -s a cur";
  std::vector<std::string> results;
  const std::size_t count = 2 + random() % 4;
  for (std::size_t number = 1; number <= count; ++number) {
    const std::string in = input_for(number, random, results);
    const std::string out = result_of(number, random);
    const std::string folder = one_of(random, kFolders);
    const std::string asked = one_of(random, kAsked);
    const std::vector<std::string> commands = {
        // Reading.
        fmt::format("cat {} > {}", in, out),
        fmt::format("cat cur/1.txt {} > {}", in, out),
        // Listing.
        fmt::format("ls {} > {}", folder, out),
        fmt::format("ls {} | wc -l > {}", folder, out),
        fmt::format("cat {}/*.txt > {}", folder, out),
        fmt::format("find {} -type f | grep -v '^./[.]' | sort | xargs cat > {}", folder, out),
        fmt::format("/usr/bin/python3 -c 'import glob; t = sorted(glob.glob(\"{}/*.csv\")); "
                    "open(\"{}\", \"w\").write(repr(t))'",
                    folder, out),
        fmt::format("/usr/bin/python3 -c 'import os; t = len(os.listdir(\"{}\")); "
                    "open(\"{}\", \"w\").write(repr(t))'",
                    folder, out),
        // Asking.
        fmt::format("if [ -e {} ]; then echo yes; else echo no; fi > {}", asked, out),
        fmt::format("if [ -d {} ]; then echo yes; else echo no; fi > {}", asked, out),
        fmt::format("stat -c %s {} > {}", in, out),
        fmt::format("readlink cur > {}", out),
        fmt::format("/usr/bin/python3 -c 'import os; open(\"{}\", \"w\").write("
                    "str(os.path.getsize(\"{}\")) + str(os.path.exists(\"{}\")))'",
                    out, in, asked),
        // Writing several, as many as a file says.
        fmt::format("for i in $(seq $(cat n)); do echo $i > {}/{}-$i.txt; done; cat n > {}", folder,
                    number, out),
        fmt::format(
            "rm -rf d{0}; mkdir d{0}; for i in $(seq $(cat n)); do cp {1} d{0}/$i.csv; done; "
            "cat d{0}/* > {2}",
            number, in, out),
        // Renaming and linking.
        fmt::format("cat {} > t{}; mv t{} {}", in, number, number, out),
        fmt::format("cp {} t{}; ln -f t{} {}; rm t{}", in, number, number, out, number),
        fmt::format("ln -sfn \"$(cat {} | head -c 5)\" l{}; readlink l{} > {}", in, number, number,
                    out),
        // Changing in place what an earlier stage made.
        fmt::format("wc -c < {0} >> {0}; cat {0} > {1}",
                    number > 1 ? one_of(random, results) : "s.txt", out),
    };
    // A third of those that leave nothing else have their output redirected by the caller. (Beside
    // other files it would be a log, which counts only if a stage reads it.)
    Stage stage{.command = one_of(random, commands), .into = {}};
    const std::string redirect = " > " + out;
    const bool leaves_others = stage.command.find("$i") != stage.command.npos ||
                               stage.command.find(">>") != stage.command.npos ||
                               stage.command.starts_with("ln ");
    if (!leaves_others && stage.command.ends_with(redirect) && random() % 3 == 0) {
      stage.command.resize(stage.command.size() - redirect.size());
      stage.into = out;
    }
    // Never fails, and is like no other: a command that is repeated is the same stage.
    stage.command += fmt::format("; : {}", number);
    made.stages.push_back(stage);
    results.push_back(out);
  }
  return made;
}

std::string random_change(Random& random) {
  const std::string source = one_of(random, kSources);
  const std::string folder = one_of(random, kFolders);
  return one_of<std::string>(
      random, {
                  fmt::format("echo other{} > {}", random() % 3, source),
                  fmt::format("printf 'same\\n' > {}", source),
                  fmt::format("echo {} > n", random() % 4),
                  fmt::format("echo new > {}/new{}.txt", folder, random() % 2),
                  fmt::format("echo new > {}/new.csv", folder),
                  fmt::format("echo hidden > {}/.hidden", folder),
                  fmt::format("rm -f {}", source),
                  fmt::format("mkdir -p {}/sub", folder),
                  fmt::format("mkdir -p {0}/sub; echo deep > {0}/sub/deep.txt", folder),
                  "ln -sfn b cur",
                  "ln -sfn a cur",
                  "echo done > done",
                  "rm -f done",
                  "mkdir -p c",
                  "rm -rf c; echo a file > c",
                  fmt::format("[ ! -e {0} ] || mv {0} {1}/moved.txt", source, folder),
                  fmt::format("[ ! -e {0} ] || cp {0} copy && cat copy > {0}; rm -f copy", source),
                  fmt::format("touch {}", source),
                  "true",
              });
}

std::string random_edit(Random& random, std::size_t number) {
  return fmt::format(
      "for f in a/o{0}* b/o{0}* o{0}*; do if [ -f $f ]; then {1}; fi; done", number,
      one_of<std::string>(random, {"echo edited > $f", "rm -f $f", "touch $f", "echo more >> $f"}));
}

}  // namespace assay::fresh
