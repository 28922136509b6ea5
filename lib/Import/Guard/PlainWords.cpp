//===- PlainWords.cpp - What a library's error says, for people -----------------===//

#include "PlainWords.h"

#include <algorithm>

namespace ds {

/// Removes everything from `begin` to the end of `end`; false where they do not occur in that order.
static bool removeBetween(std::string &text, std::string_view begin, std::string_view end) {
  size_t from = text.find(begin);
  size_t to = from == std::string::npos ? from : text.find(end, from + begin.size());
  if (to == std::string::npos)
    return false;
  text.erase(from, to + end.size() - from);
  return true;
}

static bool beginsWith(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

static std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\n\r:.";
  size_t begin = std::min(text.find_first_not_of(" \t\n\r."), text.size());
  size_t end = text.find_last_not_of(blank);
  return end == text.npos || end < begin ? std::string_view() : text.substr(begin, end + 1 - begin);
}

/// Removes " at 0x7f1e": an address, or what LibTorch spells like one.
static bool removeAddress(std::string &text) {
  constexpr std::string_view mark = " at 0x";
  size_t begin = text.find(mark);
  if (begin == std::string::npos)
    return false;
  size_t end = std::min(text.find_first_not_of("0123456789abcdef", begin + mark.size()), text.size());
  text.erase(begin, end - begin);
  return true;
}

/// What an interpreter of TorchScript was told: the text after its own stack, "RuntimeError: ...".
static std::string withoutInterpreter(const std::string &text) {
  constexpr std::string_view mark = "failed in the TorchScript interpreter.";
  size_t line = text.rfind("Error: ");
  if (text.find(mark) == std::string::npos || line == std::string::npos || line < text.find(mark))
    return text;
  return text.substr(line + 7);
}

/// Drops `condition INTERNAL ASSERT FAILED at "file":line, please report a bug to PyTorch.`
static void dropAssertion(std::string &text) {
  constexpr std::string_view mark = "INTERNAL ASSERT FAILED at ", end = "report a bug to PyTorch.";
  size_t at = text.find(mark), stop = text.find(end);
  if (at == std::string::npos || stop == std::string::npos || stop < at)
    return;
  std::string condition(trimmed(std::string_view(text).substr(0, at)));
  std::string rest(trimmed(std::string_view(text).substr(stop + end.size())));
  text = rest.empty() ? "a check in LibTorch failed: " + condition : rest;
}

/// The place that an excerpt of code names: 'File "code/m.py", line 3' is "code/m.py:3"; empty for none.
static std::string findPlace(std::string_view text) {
  constexpr std::string_view file = "File \"", line = "\", line ";
  size_t begin = text.find(file);
  size_t end = begin == text.npos ? begin : text.find(line, begin);
  if (end == text.npos)
    return "";
  size_t digits = end + line.size(), stop = digits;
  while (stop < text.size() && text[stop] >= '0' && text[stop] <= '9')
    ++stop;
  begin += file.size();
  return std::string(text.substr(begin, end - begin)) + ":" + std::string(text.substr(digits, stop - digits));
}

/// The lines before the excerpt of code, without those of a stack, joined by spaces.
static std::string joinLines(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line == ":" || beginsWith(trimmed(line), "File \"") || beginsWith(line, "Serialized "))
      break;
    line = line.substr(std::min(line.find_first_not_of(" \t\r"), line.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || beginsWith(line, "frame #"))
      continue;
    result += (result.empty() ? "" : " ") + std::string(line);
  }
  return result;
}

std::string plainWords(std::string_view text, size_t limit) {
  std::string result(text.substr(0, text.find("Exception raised from ")));
  std::string place = findPlace(result);
  result = withoutInterpreter(result);
  dropAssertion(result);
  while (removeBetween(result, "[enforce fail at ", "]") ||
         removeBetween(result, "(Could this error message be improved?", ")") ||
         removeBetween(result, ", please report a ", "PyTorch") ||
         removeBetween(result, " (of Python compilation unit at: ", ")") || removeAddress(result))
    continue;
  result = std::string(trimmed(joinLines(result)));
  if (result.empty())
    return "it gives no reason";
  if (result.size() > limit)
    result = std::string(trimmed(std::string_view(result).substr(0, limit))) + " ...";
  return place.empty() ? result : result + " (" + place.substr(0, limit) + ")";
}

bool tellsOfMemory(std::string_view text) {
  for (const char *sign : {"not enough memory", "can't allocate memory", "std::bad_alloc", "unable to mmap"})
    if (text.find(sign) != text.npos)
      return true;
  return false;
}

} // namespace ds
