#include "support/browser.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"

namespace assay::support {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr int kTimeoutMs = 30'000;

std::string decoded_base64(const std::string& text) {
  std::string bytes;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6U | static_cast<unsigned>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> static_cast<unsigned>(held) & 0xFFU);
  }
  return bytes;
}

}  // namespace

std::string Browser::program() {
  for (const char* name : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                           "/usr/bin/google-chrome", "/usr/bin/google-chrome-stable"}) {
    if (::access(name, X_OK) == 0) return name;
  }
  return {};
}

std::unique_ptr<Browser> Browser::start(const fs::path& scratch) {
  int to[2];
  int from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) return nullptr;
  const std::string profile = "--user-data-dir=" + (scratch / "profile").string();
  const std::string log = (scratch / "chromium.log").string();
  const std::string name = program();
  const pid_t process = ::fork();
  if (process == 0) {
    // Chromium reads descriptor 3 and writes 4; duplicates above 10 cannot collide with them.
    const int in = ::fcntl(to[0], F_DUPFD, 10);
    const int out = ::fcntl(from[1], F_DUPFD, 10);
    const int err = ::open(log.c_str(), O_WRONLY | O_CREAT, 0644);
    ::dup2(err, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::dup2(in, 3);
    ::dup2(out, 4);
    ::setpgid(0, 0);
    ::setenv("TMPDIR", scratch.c_str(), 1);  // it leaves folders behind
    ::execl(name.c_str(), name.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-extensions",
            "--hide-scrollbars", "--remote-debugging-pipe", profile.c_str(), nullptr);
    ::_exit(127);
  }
  ::setpgid(process, process);
  ::close(to[0]);
  ::close(from[1]);
  std::unique_ptr<Browser> browser(
      new Browser(process, base::UniqueFd(to[1]), base::UniqueFd(from[0])));
  if (browser->attach()) return browser;
  ADD_FAILURE() << name << " does not answer; see " << log;
  return nullptr;
}

Browser::~Browser() {
  to_.reset();
  from_.reset();
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

Json Browser::next() {
  for (;;) {
    if (const std::size_t end = buffer_.find('\0'); end != std::string::npos) {
      Json message = Json::parse(buffer_.substr(0, end), nullptr, false);
      buffer_.erase(0, end + 1);
      return message;
    }
    pollfd waiting{from_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kTimeoutMs) != 1) return nullptr;
    std::string more(1 << 16, '\0');
    const ssize_t got = ::read(from_.get(), more.data(), more.size());
    if (got <= 0) return nullptr;
    buffer_.append(more, 0, static_cast<std::size_t>(got));
  }
}

void Browser::take(const Json& event) {
  const std::string method = event.value("method", "");
  const Json& about = event.contains("params") ? event.at("params") : Json();
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown" ||
      method == "Log.entryAdded" || method == "Audits.issueAdded") {
    errors_.push_back(about.dump());
  }
  if (method == "Network.requestWillBeSent") {
    const std::string url = about.at("request").at("url");
    if (url != address_ && !url.starts_with("data:")) requests_.push_back(url);
  }
}

Json Browser::call(const std::string& method, Json parameters) {
  Json message = {{"id", ++calls_}, {"method", method}, {"params", std::move(parameters)}};
  if (!session_.empty()) message["sessionId"] = session_;
  if (!base::write_all(to_.get(), message.dump() + '\0')) return nullptr;
  for (;;) {
    const Json answer = next();
    if (!answer.is_object()) return nullptr;
    if (answer.contains("id") && answer.at("id") == calls_) {
      EXPECT_FALSE(answer.contains("error")) << method << answer.dump();
      return answer.value("result", Json::object());
    }
    take(answer);
  }
}

bool Browser::attach() {
  const Json target = call("Target.createTarget", {{"url", "about:blank"}});
  if (!target.is_object() || !target.contains("targetId")) return false;
  const Json attached =
      call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}});
  if (!attached.is_object() || !attached.contains("sessionId")) return false;
  session_ = attached.at("sessionId");
  for (const char* domain : {"Page", "Runtime", "Log", "Network", "Audits"}) {
    call(std::string(domain) + ".enable");
  }
  return true;
}

bool Browser::open(const fs::path& file, const Screen& screen) {
  call("Emulation.setDeviceMetricsOverride", {{"width", screen.width},
                                              {"height", screen.height},
                                              {"deviceScaleFactor", 1},
                                              {"mobile", screen.width < 600}});
  call("Emulation.setEmulatedMedia",
       {{"media", screen.print ? "print" : "screen"},
        {"features",
         {{{"name", "prefers-color-scheme"}, {"value", screen.dark ? "dark" : "light"}}}}});
  call("Emulation.setScriptExecutionDisabled", {{"value", !screen.scripts}});
  // What an earlier page still has to say is not the new one's.
  if (!load("about:blank")) return false;
  errors_.clear();
  requests_.clear();
  return load("file://" + file.string());
}

bool Browser::load(const std::string& address) {
  address_ = address;
  loaded_ = false;
  call("Page.navigate", {{"url", address}});
  while (!loaded_) {
    const Json event = next();
    if (!event.is_object()) {
      ADD_FAILURE() << address << " does not load";
      return false;
    }
    take(event);
  }
  return true;
}

Json Browser::value(const std::string& expression) {
  const Json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}});
  if (!answer.is_object() || !answer.contains("result") || answer.contains("exceptionDetails")) {
    ADD_FAILURE() << expression << ": " << answer.dump();
    return nullptr;
  }
  return answer.at("result").value("value", Json());
}

void Browser::move_pointer(double x, double y) {
  call("Input.dispatchMouseEvent", {{"type", "mouseMoved"}, {"x", x}, {"y", y}});
}

bool Browser::save_screenshot(const fs::path& file) {
  const Json shot =
      call("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}});
  if (!shot.is_object() || !shot.contains("data")) return false;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << decoded_base64(shot.at("data"));
  return fs::file_size(file) > 1000;
}

}  // namespace assay::support
