//===- Inquiries.h - Whether the other ranks are alive, and who is to blame -------------===//
//
// Who waits in vain may wait for one that waits itself. Before it blames anyone it asks, and lets those speak
// first who answer that they wait, too.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_INQUIRIES_H
#define DS_LIB_RUNTIME_COMM_CONTROL_INQUIRIES_H

#include "News.h"
#include "Roster.h"
#include "Wires.h"

namespace ds::rt {

class Inquiries {
public:
  /// All outlive the inquiries.
  Inquiries(const Roster &roster, Wires &wires, News &news) : roster(roster), wires(wires), news(news) {}

  /// Asks ranks for a sign of life: those that give none within half a second have no answer.
  void ask(const std::vector<uint32_t> &ranks);

  /// What Control has of these names.
  std::vector<uint32_t> hearOut(const std::vector<uint32_t> &missing, std::chrono::milliseconds patience);
  std::vector<uint32_t> findSilent();
  void showStacks(const std::vector<uint32_t> &blamed);
  void tellOfWait(const std::string &what, std::chrono::milliseconds waited,
                  std::chrono::milliseconds timeout);

  /// Writes down the stacks of this rank, once.
  void writeStacks() const;

private:
  std::vector<uint32_t> silentOf(const std::vector<uint32_t> &ranks);

  const Roster &roster;
  Wires &wires;
  News &news;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_INQUIRIES_H
