//===- Figures.h - The cluster description that calibration writes ----------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_FIGURES_H
#define DS_LIB_RUNTIME_CALIBRATE_FIGURES_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// A number as the file has it: four digits.
std::string spellFigure(double number);

/// A list of numbers: "[128, 3.5e+11]".
std::string spellFigures(std::span<const double> numbers);

/// Figures by dotted key, each with where it comes from. Keys of one section come one after the other.
class Figures {
public:
  void add(const std::string &key, std::string json, const std::string &note);
  void number(const std::string &key, double value, const std::string &note) {
    add(key, spellFigure(value), note);
  }
  void count(const std::string &key, int64_t value, const std::string &note) {
    add(key, std::to_string(value), note);
  }
  void text(const std::string &key, const std::string &value, const std::string &note);
  /// Rows of numbers, one a line.
  void rows(const std::string &key, const std::vector<std::vector<double>> &rows, const std::string &note);

  /// Brings keys of one section together.
  void sort();

  /// The file: `heading` as comment lines, then the figures as nested objects.
  std::string write(const std::vector<std::string> &heading) const;

private:
  struct Entry {
    std::vector<std::string> path;
    std::string json, note;
  };
  std::vector<Entry> entries;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_FIGURES_H
