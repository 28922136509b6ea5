//===- Format.cpp - Numbers as people read them ------------------------------------===//
#include "ds/Support/Format.h"

#include <cstdio>

namespace ds {

std::string formatExact(int64_t number) {
  std::string digits = std::to_string(number), text;
  size_t lead = digits[0] == '-';
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > lead && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

std::string formatBytes(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes);
  unsigned unit = 0;
  // 1023.95 would be printed as 1024.0: go to the next unit before that.
  for (; (value >= 1023.95 || value <= -1023.95 || (unit == 0 && (bytes >= 1024 || bytes <= -1024))) &&
         unit < 6;
       ++unit)
    value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

} // namespace ds
