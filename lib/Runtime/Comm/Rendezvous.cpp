//===- Rendezvous.cpp - Ranks meet in a directory --------------------------------===//
//
// A card is written under another name and then linked to its own, so that nobody reads half of one and
// nobody replaces one. Waiting is looking again, at first often: ranks of one host come within milliseconds,
// and the directory may be on a network file system, where no notification works.
//
//===---------------------------------------------------------------------------===//
#include "Rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace ds::rt {
namespace {

std::string cardPath(const std::string &directory, const std::string &nonce, uint32_t rank) {
  return fmt::format("{}/{}.{}", directory, nonce, rank);
}

std::string absencePath(const std::string &directory, const std::string &nonce) {
  return fmt::format("{}/{}.absent", directory, nonce);
}

/// Makes `path` appear with all of its content, or returns false with errno set: EEXIST if it is there
/// already.
bool writeWhole(const std::string &path, const std::string &text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0)
    return false;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool there = ::close(fd) == 0 && written && ::link(temporary.c_str(), path.c_str()) == 0;
  const int error = errno;
  ::unlink(temporary.c_str());
  errno = error;
  return there;
}

std::string readWhole(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

} // namespace

Error missingRanks(const std::vector<std::optional<Card>> &cards, std::chrono::milliseconds waited) {
  std::string names;
  size_t missing = 0;
  for (size_t rank = 0; rank < cards.size(); ++rank)
    if (!cards[rank] && ++missing)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
  return Error{ExitCode::Peer,
               fmt::format("rank{} {} of {} did not come to the rendezvous within {}",
                           missing == 1 ? "" : "s", names, cards.size(), spellSeconds(waited)),
               "start every rank with the same job, and look at what the missing one printed"};
}

void reportAbsence(const std::string &directory, const std::string &nonce, uint32_t rank,
                   const std::string &why) {
  writeWhole(absencePath(directory, nonce), fmt::format("rank {} {}", rank, why)); // a courtesy
}

Result<std::vector<Card>> meetInDirectory(const Place &place, const Card &mine, Deadline deadline) {
  using std::chrono::milliseconds;
  const Deadline begin = Clock::now();
  const std::string own = cardPath(place.directory, place.nonce, place.rank);
  const bool written = writeWhole(own, spellCard(mine));
  if (!written && errno == EEXIST)
    return Error{
        ExitCode::Peer,
        fmt::format("rendezvous '{}': another process has been rank {} of this job", own, place.rank),
        "give each process its own DS_RANK, and each job its own DS_NONCE"};
  if (!written)
    return Error{ExitCode::Io, fmt::format("rendezvous '{}': {}", own, std::strerror(errno)),
                 "DS_RENDEZVOUS must be a directory that every rank can write to"};
  std::vector<std::optional<Card>> cards(place.world);
  for (milliseconds pause(1);; pause = std::min(pause * 2, milliseconds(50))) {
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < place.world; ++rank) {
      if (!cards[rank])
        cards[rank] = parseCard(readWhole(cardPath(place.directory, place.nonce, rank)));
      found += cards[rank].has_value();
    }
    if (found == place.world)
      break;
    if (const std::string absent = readWhole(absencePath(place.directory, place.nonce)); !absent.empty())
      return Error{ExitCode::Peer, absent + " before the rendezvous", ""};
    if (Clock::now() >= deadline)
      return missingRanks(cards, std::chrono::round<milliseconds>(deadline - begin));
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - Clock::now()));
  }
  std::vector<Card> all;
  for (std::optional<Card> &card : cards)
    all.push_back(std::move(*card));
  return all;
}

} // namespace ds::rt
