#include "lineage/redact/secret_option.h"

#include <algorithm>
#include <array>

namespace assay::lineage {
namespace {

using enum SecretPart;

// Where an option's value may be. Some ask for the password if nothing is attached.
enum class Place { kBoth, kAttached, kNext };
using enum Place;

struct Row {
  std::string_view clients;  // separated by blanks
  std::string_view option;   // a word that does not begin with - is a subcommand or a keyword
  Place place = kBoth;
  SecretPart part = kWhole;
  std::string_view verb = {};   // only after this subcommand: `docker run -p` is a port
  std::string_view flags = {};  // letters without a value that may precede a short option: -sSu
};

constexpr std::string_view kMysql =
    "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mysqlpump mysqlbinlog "
    "mysqlsh mariadb mariadb-dump mariadb-admin mariadb-import mariadb-show mariadb-check "
    "mariadb-binlog";
constexpr std::string_view kMongo =
    "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles";
constexpr std::string_view kRedis = "redis-cli valkey-cli keydb-cli";
constexpr std::string_view kLdap =
    "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd ldapmodrdn ldapcompare "
    "ldapexop";
constexpr std::string_view kSamba = "smbclient smbget smbcacls smbtree smbspool rpcclient net";
constexpr std::string_view kSnmp = "snmpwalk snmpget snmpset snmpbulkwalk snmpbulkget snmptrap";
constexpr std::string_view kOracle = "sqlplus sqlldr sqlcl exp imp expdp impdp rman tnsping";
constexpr std::string_view kLogins =
    "docker podman nerdctl buildah skopeo helm oras crane regctl az oc cf";
constexpr std::string_view kCurlFlags = "sSfkLvigGIjlnNOqRJ0123456#";
constexpr std::string_view kZipFlags = "rqjvmouXyDeFTg0123456789";

constexpr auto kRows = std::to_array<Row>({
    {kMysql, "-p", kAttached},
    {"mycli mydumper myloader", "-p"},
    {kMongo, "-p"},
    {"cqlsh rabbitmqadmin ncftp ncftpget ncftpput ncftpls rdesktop", "-p"},
    {kRedis, "-a", kNext},
    {kRedis, "--pass", kNext},
    {kRedis, "AUTH", kNext},
    {kRedis, "auth", kNext},
    {kRedis, "requirepass", kNext},
    {kRedis, "masterauth", kNext},
    {"sshpass", "-p", kBoth, kWhole, {}, "ve"},
    {"twine poetry", "-p"},
    {kLogins, "-p", kBoth, kWhole, "login"},
    {"ftp lftp tnftp", "-u", kBoth, kAfterComma},
    {"lftp tnftp ftp", "--user", kBoth, kAfterComma},
    {"curl", "-u", kBoth, kAfterColon, {}, kCurlFlags},
    {"curl", "-U", kBoth, kAfterColon, {}, kCurlFlags},
    {"curl", "-E", kBoth, kAfterColon, {}, kCurlFlags},
    {"curl", "--user", kBoth, kAfterColon},
    {"curl", "--proxy-user", kBoth, kAfterColon},
    {"curl", "--cert", kBoth, kAfterColon},
    {"curl", "--proxy-cert", kBoth, kAfterColon},
    {"curl", "--pass"},
    {"curl", "--proxy-pass"},
    {"curl", "-b", kBoth, kWhole, {}, kCurlFlags},
    {"wget", "--user", kBoth, kAfterColon},
    {"http https xh xhs", "-a"},
    {"http https xh xhs", "--auth"},
    {kLdap, "-w"},
    {"ldappasswd", "-s"},
    {"ldappasswd", "-a"},
    {kSamba, "-U", kBoth, kAfterPercent},
    {kSamba, "--user", kBoth, kAfterPercent},
    {kSnmp, "-A"},
    {kSnmp, "-X"},
    {kSnmp, "-c"},
    {"openssl", "-k", kNext},
    {"openssl", "-K", kNext},
    {"zip unzip zipcloak zipnote zipsplit funzip", "-P", kBoth, kWhole, {}, kZipFlags},
    {"7z 7za 7zr 7zz p7zip rar unrar", "-p", kAttached},
    {"rar unrar", "-hp", kAttached},
    {"sqlcmd bcp isql osql tsql", "-P"},
    {"mosquitto_pub mosquitto_sub mosquitto_rr ipmitool", "-P"},
    {"xfreerdp wlfreerdp sdl-freerdp", "/p:", kAttached},
    {"nmcli", "password", kNext},
    {"nmcli", "wifi-sec.psk", kNext},
    {"swaks", "-ap", kNext},
    {kOracle, "", kAttached, kAfterSlash},
});

// The word as the list has it; empty: it is not there.
std::string_view listed(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return list.substr(at, end - at);
    at = end + 1;
  }
  return {};
}

bool is_listed(std::string_view list, std::string_view word) {
  return !listed(list, word).empty();
}

// The length of the option in the word, with the flags before its letter; 0: it is not there.
std::size_t option_length(const Row& row, std::string_view word) {
  if (word.starts_with(row.option)) return row.option.size();
  if (row.flags.empty() || !word.starts_with('-')) return 0;
  const std::size_t letter = word.find_first_not_of(row.flags, 1);
  const bool here = letter != word.npos && letter > 1 && word[letter] == row.option[1];
  return here ? letter + 1 : 0;
}

}  // namespace

std::string_view known_client(std::string_view word) {
  word = word.substr(0, word.find_last_not_of("'\"`)]},;") + 1);
  word = word.substr(word.find_last_of("/'\"`([{,=") + 1);
  if (word.empty()) return {};
  for (const Row& row : kRows) {
    if (const std::string_view found = listed(row.clients, word); !found.empty()) return found;
  }
  return {};
}

bool is_verb_of(std::string_view client, std::string_view word) {
  return std::ranges::any_of(kRows, [&](const Row& row) {
    return !row.verb.empty() && row.verb == word && is_listed(row.clients, client);
  });
}

std::optional<SecretOption> secret_option_of(std::string_view client, std::string_view verb,
                                             std::string_view word) {
  if (client.empty()) return std::nullopt;
  for (const Row& row : kRows) {
    if (!is_listed(row.clients, client) || (!row.verb.empty() && row.verb != verb)) continue;
    if (row.option.empty()) {
      const bool path = word.starts_with('/') || word.starts_with('.') || word.starts_with('-');
      if (path || word.find('/') == word.npos) continue;
      return SecretOption{row.part, 0};
    }
    const std::size_t length = option_length(row, word);
    if (length == 0) continue;
    if (word.size() == length) {
      if (row.place == kAttached) return std::nullopt;
      return SecretOption{row.part, std::nullopt};
    }
    const bool is_long = row.option.starts_with("--");
    if (row.place == kNext && !is_long) continue;
    if (is_long && word[length] != '=') continue;
    return SecretOption{row.part, length + (is_long ? 1 : 0)};
  }
  return std::nullopt;
}

}  // namespace assay::lineage
