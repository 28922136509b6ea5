//===- PlanHtml.cpp - A plan as a page to look at -------------------------------------===//
//
// Fills the template of Page/plan.html. What a model or a configuration says reaches the page in two places
// alone, each with its escaping: as JSON inside a script element that browsers do not run, and as the plan's
// text for who has no script. The script builds the rest with text nodes, and the page's policy admits no
// script or style but its own, by hash.
//
//===---------------------------------------------------------------------------===//
#include "PageParts.h"
#include "PlanHtmlData.h"

#include <cassert>

namespace ds::report {

/// Text as the content of an element or the value of a quoted attribute.
static std::string escapeHtml(const std::string &text) {
  std::string escaped;
  for (char c : text)
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    case '\'':
      escaped += "&#39;";
      break;
    default:
      escaped += c;
    }
  return escaped;
}

/// The bytes that `hex` spells, in base64: policies want hashes so.
static std::string base64OfHex(std::string_view hex) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  unsigned bits = 0, count = 0;
  for (char c : hex) {
    bits = bits << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    for (count += 4; count >= 6; count -= 6)
      text += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0)
    text += kDigits[bits << (6 - count) & 63];
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

/// The value of a place of the template, and the places' names.
using Places = std::initializer_list<std::pair<std::string_view, std::string>>;

/// `page` with each {{NAME}} replaced. What is put in is not looked at again.
static std::string fill(std::string_view page, Places places) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    size_t open = page.find("{{", at), close = page.find("}}", open);
    if (close == std::string_view::npos)
      return out.append(page.substr(at));
    out.append(page.substr(at, open - at));
    std::string_view name = page.substr(open + 2, close - open - 2);
    [[maybe_unused]] bool known = false;
    for (const auto &[key, value] : places)
      if (key == name) {
        out += value;
        known = true;
      }
    assert(known && "every place of the template is filled");
    at = close + 2;
  }
  return out;
}

std::string printPlanHtml(const PlanReport &report, const std::vector<PlanTimeline> &timelines,
                          const PageLimits &limits) {
  assert((timelines.empty() || timelines.size() == report.ranks.size()) && "one timeline for each entry");
  TextOptions text;
  return fill(page::kTemplate, {{"TITLE", escapeHtml("Plan of " + report.model)},
                                {"SCRIPT_HASH", base64OfHex(page::kScriptSha256)},
                                {"STYLE_HASH", base64OfHex(page::kStyleSha256)},
                                {"STYLE", std::string(page::kStyle)},
                                {"TEXT", escapeHtml(printPlanText(report, text))},
                                {"DATA", printPageData(report, timelines, limits)},
                                {"SCRIPT", std::string(page::kScript)}});
}

} // namespace ds::report
