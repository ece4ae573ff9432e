#include "http/server.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <exception>
#include <list>
#include <optional>

#include "http/listener.h"

namespace assay::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using beast::error_code;
using StringResponse = beast::http::response<beast::http::string_body>;

// A client that is being refused is cut off after sending this much more.
constexpr std::size_t kMostDrained = 65536;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// How long accepting pauses when the process is out of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

// The response to a request that could not be read; 0 if the connection is simply closed.
unsigned refusal_of(const error_code& error) {
  namespace http = beast::http;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::body_limit) return 413;
  return error.category() == http::make_error_code(http::error::bad_method).category() ? 400 : 0;
}

// What a proxy's client sends, "http://host/path", is the same as "/path".
std::string origin_form(std::string target) {
  constexpr beast::string_view kScheme = "http://";
  if (!beast::iequals(beast::string_view(target).substr(0, kScheme.size()), kScheme)) return target;
  const std::size_t path = target.find_first_of("/?", kScheme.size());
  if (path == std::string::npos) return "/";
  return (target[path] == '?' ? "/" : "") + target.substr(path);
}

Request to_request(beast::http::request<beast::http::string_body>&& message) {
  const std::string target = origin_form(std::string(message.target()));
  const std::size_t mark = target.find('?');
  return {.method = std::string(message.method_string()),
          .path = target.substr(0, mark),
          .query = mark == std::string::npos ? "" : target.substr(mark + 1),
          .body = std::move(message.body())};
}

StringResponse to_message(Response response, unsigned version, bool keep_alive) {
  StringResponse message;
  message.version(version);
  message.result(response.status);
  const std::string status = status_text(response.status);
  if (const std::size_t space = status.find(' '); space != std::string::npos) {
    message.reason(status.substr(space + 1));
  }
  message.set(beast::http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(keep_alive);
  message.body() = std::move(response.body);
  message.prepare_payload();
  return message;
}

Response call(const Handler& handler, const Request& request) {
  try {
    return handler(request);
  } catch (const std::exception&) {
    return plain_response(500);
  }
}

}  // namespace

// Named, not anonymous: Server::Impl has members of these types.
namespace detail {

class Connection;

// Connections in the order of their last request. Held here and by their pending operations.
using Connections = std::list<std::shared_ptr<Connection>>;

// One client: reads a request, answers it, and starts over unless either side closes.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::ip::tcp::socket socket, const Handler& handler, const ServerLimits& limits,
             Connections& all)
      : stream_(std::move(socket)),
        buffer_(limits.header_bytes + limits.body_bytes),
        handler_(handler),
        limits_(limits),
        all_(all) {}

  void start() {
    place_ = all_.insert(all_.end(), shared_from_this());
    read();
  }

  // Ends all pending operations with an error. The caller holds a reference.
  void close() {
    if (!listed_) return;
    listed_ = false;
    all_.erase(place_);
    stream_.close();
  }

 private:
  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser_->body_limit(limits_.body_bytes);
    stream_.expires_after(limits_.request_timeout);  // of the whole request
    beast::http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& error, std::size_t) {
          self->on_header(error);
        });
  }

  void on_header(const error_code& error) {
    if (error || !listed_ || parser_->is_done()) return on_read(error);
    if (!beast::iequals(parser_->get()[beast::http::field::expect], "100-continue")) {
      return read_body();
    }
    // The client sends the body only after this, or after a wait.
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](const error_code& failed, std::size_t) {
                        if (!self->listed_) return;
                        if (failed) return self->close();
                        self->read_body();
                      });
  }

  void read_body() {
    beast::http::async_read(stream_, buffer_, *parser_,
                            [self = shared_from_this()](const error_code& error, std::size_t) {
                              self->on_read(error);
                            });
  }

  void on_read(const error_code& error) {
    if (!listed_) return;
    if (error) {
      const unsigned status = refusal_of(error);
      if (status == 0) return close();
      return write(plain_response(status), false, 11, false);
    }
    all_.splice(all_.end(), all_, place_);
    const bool keep_alive = parser_->keep_alive();
    const unsigned version = parser_->get().version();
    const Request request = to_request(parser_->release());
    write(call(handler_, request), keep_alive, version, request.method == "HEAD");
  }

  void write(Response response, bool keep_alive, unsigned version, bool head_only) {
    message_ = to_message(std::move(response), version, keep_alive);
    serializer_.emplace(message_);
    stream_.expires_after(limits_.request_timeout);
    auto done = [self = shared_from_this(), keep_alive](const error_code& error, std::size_t) {
      self->on_written(error, keep_alive);
    };
    if (head_only) {
      beast::http::async_write_header(stream_, *serializer_, std::move(done));
    } else {
      beast::http::async_write(stream_, *serializer_, std::move(done));
    }
  }

  void on_written(const error_code& error, bool keep_alive) {
    if (!listed_) return;
    if (error) return close();
    if (keep_alive) return read();
    // Closing a socket with unread data resets the connection, and the client may lose the
    // response: its remaining data is read first, up to a limit.
    error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    stream_.expires_after(limits_.request_timeout);
    drain();
  }

  void drain() {
    stream_.async_read_some(asio::buffer(scratch_),
                            [self = shared_from_this()](const error_code& error, std::size_t got) {
                              if (!self->listed_) return;
                              self->drained_ += got;
                              if (error || self->drained_ >= kMostDrained) return self->close();
                              self->drain();
                            });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  const Handler& handler_;
  const ServerLimits& limits_;
  Connections& all_;
  Connections::iterator place_;
  bool listed_ = true;
  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
  StringResponse message_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;
  std::array<char, 4096> scratch_{};
  std::size_t drained_ = 0;
};

}  // namespace detail

class Server::Impl {
 public:
  Impl(Listener listener, base::UniqueFd stop_event, Handler handler, const ServerLimits& limits)
      : address_(std::move(listener.address)),
        handler_(std::move(handler)),
        limits_(limits),
        listener_(context_, listener.socket.release()),
        stop_event_(context_, stop_event.release()),
        accept_again_(context_) {}

  ~Impl() { close_all(); }

  [[nodiscard]] const std::string& address() const { return address_; }

  void run() {
    stop_event_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [this](const error_code&) { context_.stop(); });
    wait_for_clients();
    context_.run();
    close_all();
  }

  void stop() {
    const std::uint64_t one = 1;
    // A full counter has stopped the server already.
    [[maybe_unused]] const ssize_t written = ::write(stop_event_.native_handle(), &one, sizeof one);
  }

 private:
  void wait_for_clients() {
    listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](const error_code& error) {
                           if (!error) accept_all();
                         });
  }

  // Not Asio's own accept: it leaves the new socket open across exec().
  void accept_all() {
    while (true) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      base::UniqueFd client(::accept4(listener_.native_handle(), reinterpret_cast<sockaddr*>(&peer),
                                      &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (client.valid()) {
        if (connections_.size() >= limits_.connections) close_oldest();
        serve(std::move(client), peer.ss_family);
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_for_clients();
      // Most likely out of file descriptors; the listener would be ready again at once.
      close_oldest();
      accept_again_.expires_after(kAcceptPause);
      accept_again_.async_wait([this](const error_code& error) {
        if (!error) accept_all();
      });
      return;
    }
  }

  void serve(base::UniqueFd client, sa_family_t family) {
    asio::ip::tcp::socket socket(context_);
    error_code error;
    const auto protocol = family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
    socket.assign(protocol, client.get(), error);
    if (error) return;
    (void)client.release();
    std::make_shared<detail::Connection>(std::move(socket), handler_, limits_, connections_)
        ->start();
  }

  void close_oldest() {
    if (connections_.empty()) return;
    const std::shared_ptr<detail::Connection> oldest = connections_.front();
    oldest->close();
  }

  void close_all() {
    while (!connections_.empty()) close_oldest();
  }

  std::string address_;
  Handler handler_;
  ServerLimits limits_;
  asio::io_context context_{1};
  asio::posix::stream_descriptor listener_;
  asio::posix::stream_descriptor stop_event_;
  asio::steady_timer accept_again_;
  detail::Connections connections_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

base::Result<Server> Server::listen(const std::string& where, const std::string& address,
                                    Handler handler, const ServerLimits& limits) {
  ASSAY_TRY(Listener listener, listen_at(where, address));
  base::UniqueFd stop_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_event.valid()) {
    return base::fail(base::system_error(where, "cannot create an eventfd", errno));
  }
  try {
    return Server(std::make_unique<Impl>(std::move(listener), std::move(stop_event),
                                         std::move(handler), limits));
  } catch (const boost::system::system_error& error) {
    return base::fail(base::system_error(where, "cannot start the server", error.code().value()));
  }
}

const std::string& Server::address() const {
  return impl_->address();
}
void Server::run() {
  impl_->run();
}
void Server::stop() {
  impl_->stop();
}

}  // namespace assay::http
