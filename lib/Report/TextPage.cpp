//===- TextPage.cpp - Tables for a terminal ---------------------------------------===//

#include "TextPage.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ds::report {

/// Number of columns of a UTF-8 text without control sequences (one for each code point).
static unsigned columns(const std::string &text) {
  return unsigned(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string left(std::string text, unsigned width) {
  // Control characters of foreign names would break the table.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (unsigned char)c < 0x20 || c == 0x7F; }, '?');
  if (columns(text) > width) {
    std::string head, tail;
    unsigned keep = width - 2, at = 0, total = columns(text);
    for (char c : text) {
      at += (c & 0xC0) != 0x80;
      if (at <= keep / 2)
        head += c;
      else if (at > total - (keep - keep / 2))
        tail += c;
    }
    text = head + ".." + tail;
  }
  return text + std::string(width - columns(text), ' ');
}

std::string right(const std::string &text, unsigned width) {
  unsigned used = columns(text);
  return std::string(used < width ? width - used : 0, ' ') + text;
}

static std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string percent(int64_t part, int64_t whole, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, whole > 0 ? 100.0 * double(part) / double(whole) : 0.0);
  return text;
}

TextPage::TextPage(const TextOptions &options) : options(options) {
  this->options.width = std::max(60u, options.width);
}

std::string TextPage::paint(const std::string &text, const char *code) const {
  return options.colour ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

std::string TextPage::bar(int64_t part, int64_t whole, unsigned room) const {
  if (part <= 0 || whole <= 0)
    return "";
  int64_t eighths = std::max<int64_t>(1, std::llround(double(part) / double(whole) * room * 8));
  std::string text;
  if (!options.unicode)
    return std::string(size_t(std::max<int64_t>(1, (eighths + 4) / 8)), '#');
  for (; eighths >= 8; eighths -= 8)
    text += "█";
  const char *parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  return text + parts[eighths];
}

std::string TextPage::curve(const std::vector<int64_t> &values, unsigned room) const {
  const char *heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const char ascii[] = {'_', '.', ',', '-', '=', '+', '*', '#'};
  size_t n = values.size(), cells = std::min<size_t>(room, n);
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  double bottom = double(*least), range = double(*most) - bottom;
  std::string text;
  for (size_t cell = 0; cell < cells; ++cell) {
    auto first = values.begin() + cell * n / cells, last = values.begin() + (cell + 1) * n / cells;
    double value = double(*std::max_element(first, last));
    int height = range > 0 ? std::clamp(int((value - bottom) / range * 8), 0, 7) : 7;
    text += options.unicode ? std::string(heights[height]) : std::string(1, ascii[height]);
  }
  return text;
}

void TextPage::line(const std::string &text) { out += trimmed(text) + "\n"; }

void TextPage::section(const std::string &text) { out += "\n" + paint(text, "1") + "\n"; }

void TextPage::heading(const std::string &text) { out += "\n  " + paint(text, "1") + "\n"; }

} // namespace ds::report
