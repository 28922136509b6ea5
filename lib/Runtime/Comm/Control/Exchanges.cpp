//===- Exchanges.cpp - What all ranks tell all ----------------------------------------===//
#include "Exchanges.h"

#include "Stacks.h"

#include "ds/Runtime/Comm/Control/LongWait.h"

#include <fmt/format.h>

namespace ds::rt {

Error Exchanges::error(const char *what) const {
  return Error{ExitCode::Peer, fmt::format("{}; noticed in exchange '{}'", news.failure(), what), ""};
}

Status Exchanges::sendToAll(Frame frame, const std::string &text, const char *what, Deadline deadline) {
  for (const uint32_t peer : roster.others())
    if (!news.failed() && !wires.write(peer, frame, text, deadline) && news.failure(kNewsTime).empty())
      news.fail(fmt::format("{} took no message of exchange '{}'", roster.name({peer}), what));
  return news.failed() ? Status(error(what)) : Status();
}

/// Fails for the sake of ranks that did not come, once they have been asked whether they live.
void Exchanges::blame(const std::vector<uint32_t> &missing, const std::string &reason) {
  inquiries.ask(missing);
  inquiries.showStacks(missing);
  news.fail(reason);
}

Result<std::vector<std::string>> Exchanges::exchange(const std::string &mine, const char *what,
                                                     std::chrono::milliseconds timeout) {
  if (mine.size() > kMaxFrameBytes)
    return Error{ExitCode::Internal, fmt::format("exchange '{}' of {} bytes", what, mine.size()), ""};
  const Deadline deadline = Clock::now() + timeout;
  if (Status status = sendToAll(Frame::Blob, mine, what, deadline); !status)
    return status.error();
  std::vector<std::string> all(roster.world());
  all[roster.rank] = mine;
  bool told = false;
  std::vector<uint32_t> missing;
  for (const uint32_t peer : roster.others()) {
    const bool arrived = awaitBlob(peer, what, timeout, deadline, told);
    if (news.failed())
      break;
    if (arrived)
      all[peer] = news.takeBlob(peer);
    else
      missing.push_back(peer);
  }
  if (!missing.empty())
    blame(missing, fmt::format("{} did not take part in exchange '{}' within {}", roster.name(missing), what,
                               spellSeconds(timeout)));
  if (!news.failure().empty())
    return error(what);
  return all;
}

/// The thread that waits knows of all for whom, and says so once.
bool Exchanges::awaitBlob(uint32_t peer, const char *what, std::chrono::milliseconds timeout,
                          Deadline deadline, bool &told) {
  if (!told && !news.awaitBlob(peer, deadline - timeout + longWait(timeout))) {
    told = true;
    writeToStderr(
        fmt::format("ds-run: rank {} has been waiting for {} for {} in exchange '{}'; the time-out is {}\n",
                    roster.rank, roster.name(news.withoutBlob()), spellWait(longWait(timeout)), what,
                    spellSeconds(timeout)),
        kWritingTime);
  }
  return news.awaitBlob(peer, deadline) && !news.failed();
}

Status Exchanges::finish(std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  if (Status status = sendToAll(Frame::Finish, "", "end of the run", deadline); !status)
    return status;
  if (const std::vector<uint32_t> missing = news.awaitFinish(deadline); !missing.empty())
    blame(missing, fmt::format("{} did not come to the end of the run within {}", roster.name(missing),
                               spellSeconds(timeout)));
  return news.failure().empty() ? Status() : Status(error("end of the run"));
}

} // namespace ds::rt
