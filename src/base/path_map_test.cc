#include "base/path_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::base {
namespace {

TEST(PathMap, Paths) {
  const PathMap map("/home/u/p", "/tmp/copy");
  EXPECT_EQ(map.path("/home/u/p/a/b"), "/tmp/copy/a/b");
  EXPECT_EQ(map.path("/home/u/p"), "/tmp/copy");
  EXPECT_EQ(map.path("/home/u/p2/a"), "/home/u/p2/a");
  EXPECT_EQ(map.path("/data"), "/data");
}

TEST(PathMap, Arguments) {
  const PathMap map("/home/u/p", "/c");
  struct Case {
    const char *word, *expected;
  };
  for (const Case& c :
       std::vector<Case>{{"/home/u/p/x", "/c/x"},
                         {"/home/u/p", "/c"},
                         {"--data=/home/u/p/x", "--data=/c/x"},
                         {"-I/home/u/p/include", "-I/c/include"},
                         {"/home/u/p/a:/home/u/p/b:/usr", "/c/a:/c/b:/usr"},
                         {"cd /home/u/p && run '/home/u/p/x'", "cd /c && run '/c/x'"},
                         {"file:///home/u/p/x", "file:///c/x"},
                         {"a//home/u/p/x", "a//home/u/p/x"},
                         {"/mnt/home/u/p/x", "/mnt/home/u/p/x"},
                         {"/home/u/p2", "/home/u/p2"},
                         {"/home/u/p.bak/x", "/home/u/p.bak/x"},
                         {"/home/u/p-old", "/home/u/p-old"},
                         {"/home/u/p@v1/x", "/home/u/p@v1/x"},
                         {"/home/u/p 2/x", "/home/u/p 2/x"},
                         {"--data=/home/u/p 2/x", "--data=/home/u/p 2/x"},
                         {"-I/home/u/p,2", "-I/home/u/p,2"},
                         {"/lib:/home/u/p (1)/x:/home/u/p", "/lib:/home/u/p (1)/x:/c"},
                         {"file:///home/u/p 2/x", "file:///home/u/p 2/x"},
                         {"cat '/home/u/p 2/x' /home/u/p~/y", "cat '/home/u/p 2/x' /home/u/p~/y"},
                         {"cat /home/u/p\\ 2/x", "cat /home/u/p\\ 2/x"},
                         {"LIB=/home/u/p run;ls /home/u/p;", "LIB=/c run;ls /c;"},
                         {"ls \"/home/u/p\">/home/u/p/x", "ls \"/c\">/c/x"},
                         {"--all=/home/u/p,/home/u/p/x", "--all=/c,/c/x"},
                         {"plain", "plain"},
                         {"", ""}}) {
    EXPECT_EQ(map.argument(c.word), c.expected) << c.word;
  }
}

// The same as one PathMap after the other.
RC_GTEST_PROP(WithPrefixProperty, EveryPathAtOnceIsOneAfterTheOther, ()) {
  const auto some = [](auto... parts) {
    return rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(parts...));
  };
  std::set<std::string, std::less<>> paths;
  for (const std::string& path : *some("/a", "/a/b", "/b", "/a-b/c", "/c/a", "/ab")) {
    paths.insert(path);
  }
  std::string word;
  for (const std::string& part :
       *some("/a", "/b", "/c", "-I", "=", ":", " ", "-b", "b", "/", ",", "'")) {
    word += part;
  }
  std::string expected = word;
  for (const std::string& path : paths) expected = PathMap(path, "/new" + path).argument(expected);
  RC_ASSERT(with_prefix(word, paths, "/new") == expected);
}

}  // namespace
}  // namespace assay::base
