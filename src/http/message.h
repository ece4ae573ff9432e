// An HTTP request and the response to it, as handlers see them: plain values without sockets or
// Boost types, so that a handler is a pure function and can be tested and fuzzed as one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::http {

struct Request {
  std::string method;  // "GET"; case matters
  std::string path;    // the target up to '?', as sent: not percent-decoded
  std::string query;   // after '?'
  std::string body;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;                                            // left out when answering HEAD
  std::vector<std::pair<std::string, std::string>> headers{};  // in addition to type and length
};

// Called on the server's thread, one request at a time.
using Handler = std::function<Response(const Request&)>;

// The status line's text: "404 Not Found".
std::string status_text(unsigned status);
// A short plain-text response that names the status and, unless empty, adds a hint.
Response plain_response(unsigned status, std::string_view hint = "");

// The response of a server with a single read-only resource: the page at `path`, 404 elsewhere, 405
// for other methods.
Response single_page(const Request& request, std::string_view path, const Response& page);

}  // namespace assay::http
