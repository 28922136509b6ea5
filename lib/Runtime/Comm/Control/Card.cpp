//===- Card.cpp - What a rank says about itself before it is connected -----------===//
#include "Card.h"

#include <fmt/format.h>

#include <charconv>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/random.h>
#include <unistd.h>

namespace ds::rt {

static constexpr const char *kHead = "ds-rank-1"; ///< version of the line

std::string spellCard(const Card &card) {
  return fmt::format("{} {} {} {} {}\n", kHead, card.secret, card.address, card.port, card.host);
}

std::optional<Card> parseCard(const std::string &text) {
  std::istringstream words(text);
  std::string head, port, rest;
  Card card;
  if (!(words >> head >> card.secret >> card.address >> port >> card.host) || words >> rest ||
      head != kHead || card.secret.size() != 32 || text.back() != '\n')
    return std::nullopt;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), card.port);
  if (error != std::errc() || end != port.data() + port.size() || card.port == 0)
    return std::nullopt;
  return card;
}

std::string randomHex() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) // never for so few, once the machine has started
    ::abort();
  std::string hex;
  for (const unsigned char byte : bytes)
    hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string hostName() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || !*name)
    return "localhost";
  return name;
}

Result<std::string> interfaceAddress(const std::string &name) {
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0)
    list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs *entry = list; entry; entry = entry->ifa_next) {
      if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || name != entry->ifa_name)
        continue;
      char digits[NI_MAXHOST];
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (::getnameinfo(entry->ifa_addr, size, digits, sizeof digits, nullptr, 0, NI_NUMERICHOST) == 0)
        return std::string(digits);
    }
  return Error{ExitCode::Usage, fmt::format("DS_INTERFACE: no network interface '{}' with an address", name),
               "`ip address` lists them"};
}

std::string spellRanks(const std::vector<uint32_t> &ranks, const std::function<std::string(uint32_t)> &name) {
  constexpr size_t kMostNamed = 8;
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < kMostNamed; ++i)
    text += (i == 0 ? "" : ", ") + name(ranks[i]);
  if (ranks.size() > kMostNamed)
    text +=
        fmt::format(" and {} other{}", ranks.size() - kMostNamed, ranks.size() == kMostNamed + 1 ? "" : "s");
  return text;
}

} // namespace ds::rt
