//===- PageParts.h - The files of Page/, as texts -------------------------------------===//
#ifndef DS_LIB_REPORT_PAGEPARTS_H
#define DS_LIB_REPORT_PAGEPARTS_H

#include <string_view>

namespace ds::report::page {

extern const std::string_view kTemplate; ///< plan.html
extern const std::string_view kStyle;    ///< plan.css
extern const std::string_view kScript;   ///< the .js files, one after the other

/// SHA-256 of the two, in hexadecimal.
extern const std::string_view kStyleSha256, kScriptSha256;

} // namespace ds::report::page

#endif // DS_LIB_REPORT_PAGEPARTS_H
