// The Prometheus text, read by a strict reader; and the server, asked by clients of all kinds.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "share/metrics_server.h"
#include "share/metrics_text.h"
#include "share/testing/exposition.h"

namespace assay::share {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

View example(const std::string& title) {
  Look look;
  look.runs.push_back({.uid = "0123456789abcdef", .id = 7, .title = title, .state = {}});
  RunState& state = look.runs[0].state;
  state.launches = 18446744073709551615U;
  state.collectives = 12;
  state.matmuls = 9;
  state.matmul_flops = 3.5e21;
  DeviceState device{.uuid = {1, 2}, .total = 100, .used = 40, .limit = 50};
  device.share.thousandths = 125;
  device.busy_ns = 1'500'000'000;
  state.devices = {device, {.uuid = {9, 9}}};
  look.gpus.push_back({.index = 0, .uuid = uuid_text({1, 2}), .name = title});
  look.activities.push_back({.memory_used = base::Bytes(1 << 30),
                             .watts = 512.5,
                             .tensor_percent = 25,
                             .nvlink_sent = base::BytesPerSecond(1e9)});
  return view_of(nullptr, look);
}

TEST(MetricsTextTest, SaysWhatTheViewSays) {
  const auto read = testing::read_exposition(metrics_text(example("python train.py")));
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.value("assay_gpu_runs", {}), 1);
  EXPECT_EQ(read.value("assay_gpu_run_launches_total", {{"assay_run", "0123456789abcdef"}}),
            0x1p64);
  EXPECT_EQ(read.value("assay_gpu_run_collectives_total", {{"title", "python train.py"}}), 12);
  EXPECT_EQ(read.value("assay_gpu_run_matmuls_total", {{"assay_run", "0123456789abcdef"}}), 9);
  EXPECT_EQ(read.value("assay_gpu_run_matmul_flops_total", {{"assay_run", "0123456789abcdef"}}),
            3.5e21);
  const std::string uuid = uuid_text({1, 2});
  EXPECT_EQ(read.value("assay_gpu_run_memory_limit_bytes", {{"uuid", uuid}, {"gpu", "0"}}), 50);
  EXPECT_EQ(read.value("assay_gpu_run_compute_limit_ratio", {{"uuid", uuid}}), 0.125);
  EXPECT_EQ(read.value("assay_gpu_run_had_seconds_total", {{"uuid", uuid}}), 1.5);
  EXPECT_EQ(read.value("assay_gpu_run_memory_limit_bytes", {{"uuid", uuid_text({9, 9})}}),
            std::nullopt);
  EXPECT_EQ(read.value("assay_gpu_tensor_ratio", {{"gpu", "0"}}), 0.25);
  EXPECT_EQ(read.value("assay_gpu_power_watts", {}), 512.5);
  EXPECT_EQ(read.value("assay_gpu_nvlink_sent_bytes_per_second", {}), 1e9);
  EXPECT_FALSE(read.families.contains("assay_gpu_clock_hertz"));  // it was not told
  EXPECT_EQ(testing::read_exposition(metrics_text({})).value("assay_gpu_runs", {}), 0);
}

RC_GTEST_PROP(MetricsTextTest, NoTitleBreaksTheText, (const std::string& title)) {
  const auto read = testing::read_exposition(metrics_text(example(title)));
  RC_ASSERT(read.error == "");
  RC_ASSERT(read.families.at("assay_gpu_run_launches_total").samples.size() == 1U);
}

TEST(ExpositionReaderTest, IsStrict) {
  const std::string head = "# HELP a b\n# TYPE a gauge\n";
  EXPECT_EQ(testing::read_exposition(head + "a{x=\"1\\\\\\\"\\n\"} 1\n").error, "");
  for (const char* wrong :
       {"a 1", "a{x=\"1} 1\n", "a{x=\"\\x\"} 1\n", "a{x=1} 1\n", "a{1x=\"\"} 1\n", "a one\n",
        "b 1\n", "a  1\n", "a 1\na 2\n", "a{x=\"\",x=\"\"} 1\n", "", "a 1\n# HELP a b\n", "\n"}) {
    EXPECT_NE(testing::read_exposition(head + wrong).error, "") << wrong;
  }
}

TEST(HttpAnswerTest, AnswersOnlyWhatItShould) {
  EXPECT_THAT(
      http_answer("GET /metrics HTTP/1.1\r\n\r\n", "m 1\n"),
      AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: text/plain; version=0.0.4"),
            HasSubstr("Content-Length: 4\r\n"), EndsWith("\r\n\r\nm 1\n")));
  EXPECT_THAT(http_answer("GET /metrics?x=1 HTTP/1.0\n\n", "m"), HasSubstr("200 OK"));
  EXPECT_THAT(http_answer("HEAD /metrics HTTP/1.1\r\n\r\n", "m 1\n"),
              AllOf(HasSubstr("Content-Length: 4\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(http_answer("GET / HTTP/1.1\r\n\r\n", "m"), HasSubstr("404"));
  EXPECT_THAT(http_answer("GET /metricsx HTTP/1.1\r\n\r\n", "m"), HasSubstr("404"));
  EXPECT_THAT(http_answer("POST /metrics HTTP/1.1\r\n\r\n", "m"),
              AllOf(HasSubstr("405"), HasSubstr("Allow: GET, HEAD")));
  for (const char* bad : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "\x16\x03\x01\n\n",
                          "GET /metrics SPDY/3\r\n\r\n"}) {
    EXPECT_THAT(http_answer(bad, "m"), HasSubstr("400")) << bad;
  }
}

class MetricsServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = MetricsServer::listen("top --listen", "0");
    ASSERT_TRUE(server) << server.error().line();
    port_ = std::stoi(server->address().substr(server->address().rfind(':') + 1));
    thread_ = std::thread([this, owned = std::make_shared<MetricsServer>(*std::move(server))] {
      sigset_t none{};
      ::sigemptyset(&none);
      while (!stop_) {
        owned->serve_until(base::system_clock().monotonic_ns() + 20'000'000, "m 1\n", none);
      }
    });
  }
  void TearDown() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  base::UniqueFd connect() const {
    base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return client;
  }
  static void send(const base::UniqueFd& client, std::string_view text) {
    (void)::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  static std::string receive(const base::UniqueFd& client) {
    std::string all;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  std::string ask(std::string_view text) const {
    const base::UniqueFd client = connect();
    send(client, text);
    return receive(client);
  }
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

constexpr const char* kAsk = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(MetricsServerTest, AnswersHoweverItIsAsked) {
  EXPECT_THAT(ask(kAsk), EndsWith("\r\n\r\nm 1\n"));
  const base::UniqueFd slow = connect();
  for (const char c : std::string_view(kAsk)) send(slow, std::string_view(&c, 1));
  EXPECT_THAT(receive(slow), EndsWith("\r\n\r\nm 1\n"));
  // More than was asked for is not in the way.
  EXPECT_THAT(ask(std::string(kAsk) + std::string(30000, 'x')), EndsWith("m 1\n"));
  EXPECT_THAT(ask(std::string(20000, 'x')), HasSubstr("431"));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\n" + std::string(20000, 'x')), HasSubstr("431"));
  const base::UniqueFd gone = connect();
  send(gone, kAsk);
}

TEST_F(MetricsServerTest, NobodyKeepsTheOthersOut) {
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(connect());
    send(idle.back(), "GET /met");
  }
  EXPECT_THAT(ask(kAsk), EndsWith("m 1\n"));
  // The oldest had to go, the newest are still welcome.
  send(idle.back(), "rics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(receive(idle.back()), EndsWith("m 1\n"));
  EXPECT_EQ(receive(idle.front()), "");
}

TEST(MetricsServerAddressTest, BadOnesAreRefused) {
  for (const char* text : {"", "x", "65536", "-1", "80x", ":9400", "::1:9400", "host:", "[::1]"}) {
    const auto server = MetricsServer::listen("top --listen", text);
    ASSERT_FALSE(server) << text;
    EXPECT_EQ(server.error().code, base::ExitCode::kUsage) << text;
  }
  const auto first = MetricsServer::listen("top --listen", "127.0.0.1:0");
  ASSERT_TRUE(first);
  const auto second = MetricsServer::listen("top --listen", first->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ExitCode::kUnfit);
  EXPECT_THAT(second.error().line(), HasSubstr("top --listen: cannot listen at 127.0.0.1:"));
}

}  // namespace
}  // namespace assay::share
