//===- Notes.cpp - What ds-opt tells beside its result ------------------------------===//
#include "Notes.h"

#include "ds/Support/Messages.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <unistd.h>

using namespace ds;

namespace {
/// The notes of this process.
struct Kept {
  std::vector<Notice> notes;
  bool all = false;
};
} // namespace

static Kept &kept() {
  static Kept kept;
  return kept;
}

std::vector<std::string> ds::opt::chooseNotes(std::vector<Notice> notes, bool all) {
  std::stable_partition(notes.begin(), notes.end(), [](const Notice &note) { return note.isCostly; });
  const size_t shown = all || notes.size() <= kMostNoteLines ? notes.size() : kMostNoteLines - 1;
  std::vector<std::string> lines;
  for (size_t i = 0; i < shown; ++i)
    lines.push_back(notes[i].text);
  if (shown < notes.size())
    lines.push_back(std::to_string(notes.size() - shown) + " more: --notes=all lists them");
  return lines;
}

void ds::opt::tellAllNotes() { kept().all = true; }

void ds::opt::addNote(Notice note) { kept().notes.push_back(std::move(note)); }

void ds::opt::addNotes(const std::vector<Notice> &notes) {
  kept().notes.insert(kept().notes.end(), notes.begin(), notes.end());
}

void ds::opt::tellNotes() {
  constexpr size_t kIndent = 4;
  for (const std::string &line : chooseNotes(std::move(kept().notes), kept().all))
    llvm::errs() << wrapLines("note: " + printableText(line), terminalColumns(STDERR_FILENO), kIndent)
                 << "\n";
  kept().notes.clear();
}
