#include "http/message.h"

#include <fmt/format.h>

namespace assay::http {
namespace {

std::string_view reason_of(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    default:
      return "";
  }
}

}  // namespace

std::string status_text(unsigned status) {
  const std::string_view reason = reason_of(status);
  return reason.empty() ? fmt::format("{}", status) : fmt::format("{} {}", status, reason);
}

Response plain_response(unsigned status, std::string_view hint) {
  return {.status = status,
          .body = fmt::format("{}{}{}\n", status_text(status), hint.empty() ? "" : ": ", hint)};
}

Response single_page(const Request& request, std::string_view path, const Response& page) {
  const std::string hint = fmt::format("see {}", path);
  if (request.method != "GET" && request.method != "HEAD") {
    Response refused = plain_response(405, hint);
    refused.headers.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  return request.path == path ? page : plain_response(404, hint);
}

}  // namespace assay::http
