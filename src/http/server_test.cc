// The server as clients of all kinds meet it: curl, raw sockets, and clients that mean harm.
#include "http/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "base/unique_fd.h"

namespace assay::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kGet = "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

Response answer(const Request& request) {
  if (request.path == "/throw") throw std::runtime_error("no");
  if (request.path == "/echo") return {.body = request.query + "|" + request.body};
  if (request.path == "/large") return {.body = std::string(4 << 20, 'a')};
  if (request.path == "/huge")
    return {.body = std::string(64 << 20, 'a')};  // more than TCP buffers
  return single_page(request, "/page", {.content_type = "text/plain; version=9", .body = "m 1\n"});
}

class Running {
 public:
  explicit Running(const ServerLimits& limits = {}, const std::string& address = "0") {
    auto server = Server::listen("test", address, answer, limits);
    EXPECT_TRUE(server) << server.error().line();
    server_.emplace(*std::move(server));
    address_ = server_->address();
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Running() {
    server_->stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] base::UniqueFd connect() const {
    base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval timeout{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return client;
  }
  [[nodiscard]] std::string request(std::string_view text) const;

 private:
  std::optional<Server> server_;
  std::string address_;
  std::thread thread_;
};

void send(const base::UniqueFd& client, std::string_view text) {
  (void)::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

// Until the server closes, or 10 seconds pass without data.
std::string receive(const base::UniqueFd& client) {
  std::string all;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}

std::string Running::request(std::string_view text) const {
  const base::UniqueFd client = connect();
  send(client, text);
  return receive(client);
}

std::string curl(const std::string& arguments) {
  const std::string command = "curl -s --max-time 10 " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    out.append(buffer, got);
  }
  ::pclose(pipe);
  return out;
}

// Repeats what depends on how fast this test runs until it succeeds, for at most a minute.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto began = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - began > std::chrono::minutes(1)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

TEST(HttpServer, AnswersCurl) {
  const Running server;
  const std::string url = "http://" + server.address();
  EXPECT_THAT(
      curl("-i " + url + "/page"),
      AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: text/plain; version=9\r\n"),
            HasSubstr("Content-Length: 4\r\n"), EndsWith("\r\n\r\nm 1\n")));
  EXPECT_THAT(curl("-I " + url + "/page"),
              AllOf(HasSubstr("Content-Length: 4\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(curl("-0 -i " + url + "/page?x=1"), EndsWith("m 1\n"));
  EXPECT_THAT(curl("-i " + url + "/"), HasSubstr("404 Not Found"));
  EXPECT_THAT(curl("-i -d x " + url + "/page"),
              AllOf(HasSubstr("405"), HasSubstr("Allow: GET, HEAD")));
  EXPECT_EQ(curl("-d body '" + url + "/echo?a=b'"), "a=b|body");
  EXPECT_EQ(curl(url + "/large").size(), 4U << 20);
  EXPECT_THAT(curl("-i " + url + "/throw"), HasSubstr("500 Internal Server Error"));
  // Both requests over one connection.
  EXPECT_THAT(curl("-v " + url + "/page " + url + "/page"), HasSubstr("Re-using existing"));
}

TEST(HttpServer, AnswersOverIpv6) {
  const base::UniqueFd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (!probe.valid() ||
      ::bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) != 0) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  const Running server({}, "[::1]:0");
  EXPECT_THAT(server.address(), StartsWith("[::1]:"));
  EXPECT_EQ(curl("-g http://" + server.address() + "/page"), "m 1\n");
}

TEST(HttpServer, AnswersHoweverARequestArrives) {
  const Running server;
  EXPECT_THAT(server.request(kGet), EndsWith("\r\n\r\nm 1\n"));
  const base::UniqueFd slow = server.connect();
  for (const char c : std::string_view(kGet)) send(slow, std::string_view(&c, 1));
  EXPECT_THAT(receive(slow), EndsWith("\r\n\r\nm 1\n"));
  const base::UniqueFd pipelined = server.connect();
  send(pipelined, "GET /echo?1 HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(kGet));
  EXPECT_THAT(receive(pipelined), AllOf(HasSubstr("\r\n\r\n1|HTTP/1.1 200"), EndsWith("m 1\n")));
  // Data after the last request does not destroy its response.
  EXPECT_THAT(server.request(kGet + std::string(30000, 'x')), EndsWith("m 1\n"));
  const base::UniqueFd gone = server.connect();
  send(gone, kGet);
}

TEST(HttpServer, RefusesWhatIsMalformedOrTooLarge) {
  const Running server;
  for (const char* bad : {"\r\n\r\n", "GET\r\n\r\n", "GET /page\r\n\r\n", "\x16\x03\x01\r\n\r\n",
                          "GET /page SPDY/3\r\n\r\n", "GET /page HTTP/1.1\r\nbad header\r\n\r\n"}) {
    EXPECT_THAT(server.request(bad),
                AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"), HasSubstr("Connection: close")))
        << bad;
  }
  EXPECT_THAT(server.request(std::string(20000, 'x')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(server.request("GET /page HTTP/1.1\r\n" + std::string(20000, 'x')),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(server.request("GET /page HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(server.request("POST /echo HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  const base::UniqueFd half = server.connect();
  send(half, "GET /pa");
  ::shutdown(half.get(), SHUT_WR);
  EXPECT_EQ(receive(half), "");
  EXPECT_THAT(server.request(kGet), EndsWith("m 1\n"));
}

TEST(HttpServer, SlowClientsRunOutOfTime) {
  const Running server({.request_timeout = std::chrono::milliseconds(200)});
  const base::UniqueFd silent = server.connect();
  EXPECT_EQ(receive(silent), "");
  // Sending a little again and again does not extend the time.
  const base::UniqueFd trickle = server.connect();
  const auto began = std::chrono::steady_clock::now();
  send(trickle, "GET /page HTTP/1.1\r\n");
  while (::send(trickle.get(), "a: b\r\n", 6, MSG_NOSIGNAL) == 6 &&
         std::chrono::steady_clock::now() - began < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  // Nor does asking for much and not reading it.
  EXPECT_TRUE(eventually([&] {
    const base::UniqueFd deaf = server.connect();
    send(deaf, "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    const std::size_t got = receive(deaf).size();
    return got > 0 && got < 64U << 20;
  }));
  EXPECT_TRUE(eventually([&] { return server.request(kGet).ends_with("m 1\n"); }));
}

TEST(HttpServer, AbsoluteTargetsAndExpectationsAreUnderstood) {
  const Running server;
  for (const char* target : {"http://x/page", "HTTP://x:9400/page?a=b"}) {
    EXPECT_THAT(server.request(
                    fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target)),
                EndsWith("\r\n\r\nm 1\n"))
        << target;
  }
  EXPECT_THAT(server.request("GET http://x HTTP/1.1\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(server.request("GET http://x?page HTTP/1.1\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 404"));
  const base::UniqueFd client = server.connect();
  send(client,
       "POST /echo?q HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n"
       "Expect: 100-continue\r\n\r\n");
  std::array<char, 25> asked{};
  ASSERT_EQ(::recv(client.get(), asked.data(), asked.size(), MSG_WAITALL), 25);
  EXPECT_EQ(std::string_view(asked.data(), asked.size()), "HTTP/1.1 100 Continue\r\n\r\n");
  send(client, "body");
  EXPECT_THAT(receive(client), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("q|body")));
}

TEST(HttpServer, NoClientKeepsOthersOut) {
  const Running server;
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(server.connect());
    send(idle.back(), "GET /pa");
  }
  EXPECT_THAT(server.request(kGet), EndsWith("m 1\n"));
  // The connections that were opened first were closed; the last ones are still served.
  send(idle.back(), "ge HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(receive(idle.back()), EndsWith("m 1\n"));
  EXPECT_EQ(receive(idle.front()), "");
}

TEST(HttpServer, StopsWithClientsConnected) {
  std::vector<base::UniqueFd> clients;
  {
    const Running server;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(server.connect());
      send(clients.back(), i % 2 == 0 ? "GET /large HTTP/1.1\r\n\r\n" : "GET /");
    }
    EXPECT_THAT(server.request(kGet), EndsWith("m 1\n"));
  }
  EXPECT_EQ(receive(clients[1]), "");
  auto unused = Server::listen("test", "0", answer);
  ASSERT_TRUE(unused);
  unused->stop();
  unused->run();
}

RC_GTEST_PROP(HttpServerProperties, SurvivesAnyBytes, (const std::vector<std::string>& garbage)) {
  static const Running server({.request_timeout = std::chrono::milliseconds(500)});
  for (const std::string& bytes : garbage) {
    const base::UniqueFd client = server.connect();
    send(client, "GET /page HTTP/1.1\r\n");
    send(client, bytes);
  }
  RC_ASSERT(eventually([&] { return server.request(kGet).ends_with("m 1\n"); }));
}

TEST(HttpListener, BadAddressesAreRefused) {
  for (const char* text : {"", "x", "65536", "-1", "80x", ":9400", "::1:9400", "host:", "[::1]"}) {
    const auto server = Server::listen("top --listen", text, answer);
    ASSERT_FALSE(server) << text;
    EXPECT_EQ(server.error().code, base::ExitCode::kUsage) << text;
  }
  const auto first = Server::listen("top --listen", "127.0.0.1:0", answer);
  ASSERT_TRUE(first);
  const auto second = Server::listen("top --listen", first->address(), answer);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ExitCode::kUnfit);
  EXPECT_THAT(second.error().line(), HasSubstr("top --listen: cannot listen at 127.0.0.1:"));
}

}  // namespace
}  // namespace assay::http
