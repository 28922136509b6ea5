//===- Rendezvous.cpp - Ranks meet in a directory --------------------------------===//
//
// A card is written under another name and then linked to its own, so that nobody reads half of one and
// nobody replaces one. Waiting is looking again, at first often: ranks of one host come within milliseconds,
// and the directory may be on a network file system, where no notification works. Others may be able to write
// there: what is not a small file of this user ends the meeting at once, unread.
//
//===---------------------------------------------------------------------------===//
#include "Rendezvous.h"

#include "SmallFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
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

/// Text that a message can show.
std::string printable(const std::string &text) {
  constexpr size_t kMostShown = 60;
  std::string shown;
  for (const unsigned char byte : text.substr(0, kMostShown))
    shown += byte >= ' ' && byte < 127 ? static_cast<char>(byte) : '?';
  return text.size() > kMostShown ? shown + "..." : shown;
}

Error foreign(const std::string &path, const std::string &why) {
  return Error{
      ExitCode::Peer, fmt::format("rendezvous '{}': {}: no rank has left it", path, why),
      "give DS_RENDEZVOUS a directory that only this user can write to, and each job its own DS_NONCE"};
}

/// The directory of one job, as one of its ranks reads it.
class Meeting {
public:
  Meeting(const RankIdentity &place, uid_t owner)
      : place(place), owner(owner), found(place.world), spoilt(place.world) {}

  /// Takes the cards that have come, up to the first that has not, or beyond it with `all`; true when all
  /// have. Fails on what no rank has left. Many ranks that all look for many cards, again and again, would
  /// keep each other from leaving theirs: so each asks for one at a time that is not there.
  Result<bool> look(bool all) {
    for (uint32_t rank = 0; rank < place.world && (all || numFound >= rank); ++rank) {
      if (found[rank])
        continue;
      const std::string path = cardPath(place.directory, place.nonce, rank);
      const SmallFile file = readSmallFile(AT_FDCWD, path, owner);
      if (!file.refusal.empty())
        return foreign(path, file.refusal);
      found[rank] = parseCard(file.text);
      spoilt[rank] = found[rank] ? "" : file.text;
      numFound += found[rank].has_value();
    }
    if (numFound == place.world)
      return true;
    const std::string path = absencePath(place.directory, place.nonce);
    const SmallFile absent = readSmallFile(AT_FDCWD, path, owner);
    if (!absent.refusal.empty())
      return foreign(path, absent.refusal);
    if (!absent.text.empty())
      return Error{ExitCode::Peer, absent.text + " before the rendezvous", ""};
    return false;
  }

  /// The error at the deadline. A card that is being written on another machine may be incomplete for a
  /// moment, so that one that makes no sense is reported only now.
  Error missing(std::chrono::milliseconds waited) const {
    Error error = missingRanks(found, waited);
    for (uint32_t rank = 0; rank < place.world; ++rank)
      if (!spoilt[rank].empty()) {
        error.message += fmt::format("; '{}' is no card: \"{}\"",
                                     cardPath(place.directory, place.nonce, rank), printable(spoilt[rank]));
        break;
      }
    return error;
  }

  std::vector<Card> cards() const {
    std::vector<Card> all;
    for (const std::optional<Card> &card : found)
      all.push_back(*card);
    return all;
  }

private:
  const RankIdentity &place;
  const uid_t owner;
  std::vector<std::optional<Card>> found;
  std::vector<std::string> spoilt; ///< by rank: what is there instead of a card
  uint32_t numFound = 0;
};

} // namespace

Error missingRanks(const std::vector<std::optional<Card>> &cards, std::chrono::milliseconds waited) {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < cards.size(); ++rank)
    if (!cards[rank])
      missing.push_back(rank);
  const std::string names = spellRanks(missing, [](uint32_t rank) { return std::to_string(rank); });
  return Error{ExitCode::Peer,
               fmt::format("rank{} {} of {} did not come to the rendezvous within {}",
                           missing.size() == 1 ? "" : "s", names, cards.size(), spellSeconds(waited)),
               "start every rank with the same job, and look at what the missing one printed"};
}

void reportAbsence(const std::string &directory, const std::string &nonce, uint32_t rank,
                   const std::string &why) {
  writeWhole(absencePath(directory, nonce), fmt::format("rank {} {}", rank, why)); // a courtesy
}

std::string toldAbsence(const RankIdentity &place, uid_t owner) {
  return readSmallFile(AT_FDCWD, absencePath(place.directory, place.nonce), owner).text;
}

Result<std::vector<Card>> meetInDirectory(const RankIdentity &place, const Card &mine, Deadline deadline) {
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
  // Who owns this rank's card owns all: this user, or whom a network file system takes it for.
  struct stat status;
  if (::lstat(own.c_str(), &status) != 0)
    return Error{ExitCode::Io, fmt::format("rendezvous '{}': {}", own, std::strerror(errno)),
                 "nobody may clear the directory while ranks meet there"};
  Meeting meeting(place, status.st_uid);
  for (milliseconds pause(1);; pause = std::min(pause * 2, milliseconds(50))) {
    const bool isOver = Clock::now() >= deadline;
    const Result<bool> complete = meeting.look(isOver);
    if (!complete)
      return complete.error();
    if (*complete)
      return meeting.cards();
    if (isOver)
      return meeting.missing(std::chrono::round<milliseconds>(deadline - begin));
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - Clock::now()));
  }
}

} // namespace ds::rt
