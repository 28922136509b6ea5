//===- Notes.h - What ds-opt tells beside its result --------------------------------===//
//
// A first plan came after thirty lines of notes, of which two mattered. Notes are collected until the result
// or an error is written, and then told in a few lines: first what changes memory, time or numbers.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_NOTES_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_NOTES_H

#include "ds/Support/Notice.h"

#include <string>
#include <vector>

namespace ds::opt {

/// Lines that notes may have before a result; who asks for all of them gets all.
inline constexpr size_t kMostNoteLines = 5;

/// `notes` as lines, those that are costly first: all of them, or the first ones and how many more there are.
std::vector<std::string> chooseNotes(std::vector<Notice> notes, bool all);

/// Has tellNotes tell all there is.
void tellAllNotes();

/// Keeps a note until tellNotes.
void addNote(Notice note);
void addNotes(const std::vector<Notice> &notes);

/// Prints what was kept to stderr; called before anything else is said.
void tellNotes();

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_NOTES_H
