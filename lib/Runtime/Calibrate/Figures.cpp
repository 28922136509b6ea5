//===- Figures.cpp - The cluster description that calibration writes --------------===//
#include "Figures.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

std::string spellFigure(double number) { return fmt::format("{:.4g}", number); }

std::string spellFigures(std::span<const double> numbers) {
  std::string out = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    out += (i > 0 ? ", " : "") + spellFigure(numbers[i]);
  return out + "]";
}

void Figures::add(const std::string &key, std::string json, const std::string &note) {
  Entry entry{{}, std::move(json), note};
  for (size_t begin = 0, end; begin <= key.size(); begin = end + 1) {
    end = std::min(key.find('.', begin), key.size());
    entry.path.push_back(key.substr(begin, end - begin));
  }
  entries.push_back(std::move(entry));
}

void Figures::text(const std::string &key, const std::string &value, const std::string &note) {
  std::string quoted = "\"";
  for (const char c : value)
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) >= 0x20)
      quoted += c;
  add(key, quoted + "\"", note);
}

void Figures::rows(const std::string &key, const std::vector<std::vector<double>> &rows,
                   const std::string &note) {
  std::string json = "[";
  for (size_t i = 0; i < rows.size(); ++i)
    json += (i > 0 ? ",\n  " : "\n  ") + spellFigures(rows[i]);
  add(key, json + "\n]", note);
}

void Figures::sort() {
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.path < b.path; });
}

std::string Figures::write(const std::vector<std::string> &heading) const {
  std::string out;
  for (const std::string &line : heading)
    out += "// " + line + "\n";
  out += "{";
  std::vector<std::string> open;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry &entry = entries[i];
    const size_t sections = entry.path.size() - 1;
    size_t common = 0;
    while (common < std::min(open.size(), sections) && open[common] == entry.path[common])
      ++common;
    for (; open.size() > common; open.pop_back())
      out += "\n" + std::string(2 * open.size(), ' ') + "}";
    out += i > 0 ? ",\n" : "\n";
    for (; open.size() < sections; open.push_back(entry.path[open.size()]))
      out += std::string(2 * open.size() + 2, ' ') + "\"" + entry.path[open.size()] + "\": {\n";
    const std::string indent(2 * sections + 2, ' ');
    if (!entry.note.empty())
      out += indent + "// " + entry.note + "\n";
    out += indent + "\"" + entry.path.back() + "\": ";
    for (const char c : entry.json)
      out += c == '\n' ? "\n" + indent : std::string(1, c);
  }
  for (; !open.empty(); open.pop_back())
    out += "\n" + std::string(2 * open.size(), ' ') + "}";
  return out + "\n}\n";
}

} // namespace ds::rt
