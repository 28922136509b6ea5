//===- Exchanges.h - What all ranks tell all ------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_EXCHANGES_H
#define DS_LIB_RUNTIME_COMM_CONTROL_EXCHANGES_H

#include "Inquiries.h"

namespace ds::rt {

class Exchanges {
public:
  /// All outlive the exchanges.
  Exchanges(const Roster &roster, Wires &wires, News &news, Inquiries &inquiries)
      : roster(roster), wires(wires), news(news), inquiries(inquiries) {}

  /// What Control has of these names.
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *what,
                                            std::chrono::milliseconds timeout);
  Status finish(std::chrono::milliseconds timeout);

private:
  Status sendToAll(Frame frame, const std::string &text, const char *what, Deadline deadline);
  bool awaitBlob(uint32_t peer, const char *what, std::chrono::milliseconds timeout, Deadline deadline,
                 bool &told);
  void blame(const std::vector<uint32_t> &missing, const std::string &reason);
  Error error(const char *what) const;

  const Roster &roster;
  Wires &wires;
  News &news;
  Inquiries &inquiries;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_EXCHANGES_H
