// Browser: a headless Chromium that a test controls through its debugging pipe.
//
//   auto browser = support::Browser::start(scratch);
//   browser->open(page, {.dark = true, .width = 390});
//   EXPECT_TRUE(browser->errors().empty());
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/unique_fd.h"

namespace assay::support {

// How the page is shown.
struct Screen {
  bool dark = false;
  bool print = false;
  bool scripts = true;
  int width = 1200;
  int height = 900;
};

class Browser {
 public:
  // Where Chromium is installed; empty if it is not.
  static std::string program();
  // Null, and a failed test, if it does not start. Its profile and log go into the folder.
  static std::unique_ptr<Browser> start(const std::filesystem::path& scratch);
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  ~Browser();

  // Loads the file afresh; false, and a failed test, if that takes too long.
  bool open(const std::filesystem::path& file, const Screen& screen);
  // The value of a JavaScript expression on the page, also where the page's own scripts are off.
  base::Json value(const std::string& expression);
  // Moves the mouse to a place in the window.
  void move_pointer(double x, double y);
  // The whole page as a PNG.
  bool save_screenshot(const std::filesystem::path& file);

  // Since open(): errors and warnings of the console, exceptions, violations of the page's policy.
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }
  // Since open(): addresses requested besides the page itself.
  [[nodiscard]] const std::vector<std::string>& requests() const { return requests_; }

 private:
  Browser(pid_t process, base::UniqueFd to, base::UniqueFd from)
      : process_(process), to_(std::move(to)), from_(std::move(from)) {}
  bool attach();
  bool load(const std::string& address);
  base::Json call(const std::string& method, base::Json parameters = base::Json::object());
  // The next message; null after a timeout.
  base::Json next();
  void take(const base::Json& event);

  pid_t process_;
  base::UniqueFd to_;
  base::UniqueFd from_;
  std::string buffer_;
  std::string session_;
  std::string address_;
  int calls_ = 0;
  bool loaded_ = false;
  std::vector<std::string> errors_;
  std::vector<std::string> requests_;
};

}  // namespace assay::support
