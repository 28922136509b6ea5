//===- CpuFeatures.cpp - CPUID by LLVM's feature names -------------------------===//
//
// One row per feature: the leaf and bit where the processor reports it, and the register state (XCR0) that
// the operating system must save for it. Names and bits are those of the Intel and AMD manuals.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Process/CpuFeatures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cpuid.h>
#include <cstdint>
#include <string_view>

namespace ds::rt {
namespace {

enum Register : uint8_t { A, B, C, D };
enum State : uint8_t { kNone, kYmm, kZmm, kTile };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  State state;
};

constexpr uint32_t kExt = 0x80000001;
constexpr Feature kFeatures[] = {
    {"64bit", kExt, 0, D, 29, kNone},
    {"x87", 1, 0, D, 0, kNone},
    {"cx8", 1, 0, D, 8, kNone},
    {"cmov", 1, 0, D, 15, kNone},
    {"mmx", 1, 0, D, 23, kNone},
    {"fxsr", 1, 0, D, 24, kNone},
    {"sse", 1, 0, D, 25, kNone},
    {"sse2", 1, 0, D, 26, kNone},
    {"sse3", 1, 0, C, 0, kNone},
    {"pclmul", 1, 0, C, 1, kNone},
    {"ssse3", 1, 0, C, 9, kNone},
    {"fma", 1, 0, C, 12, kYmm},
    {"cx16", 1, 0, C, 13, kNone},
    {"sse4.1", 1, 0, C, 19, kNone},
    {"sse4.2", 1, 0, C, 20, kNone},
    {"crc32", 1, 0, C, 20, kNone},
    {"movbe", 1, 0, C, 22, kNone},
    {"popcnt", 1, 0, C, 23, kNone},
    {"aes", 1, 0, C, 25, kNone},
    {"xsave", 1, 0, C, 27, kNone},
    {"avx", 1, 0, C, 28, kYmm},
    {"f16c", 1, 0, C, 29, kYmm},
    {"rdrnd", 1, 0, C, 30, kNone},
    {"sahf", kExt, 0, C, 0, kNone},
    {"lzcnt", kExt, 0, C, 5, kNone},
    {"sse4a", kExt, 0, C, 6, kNone},
    {"prfchw", kExt, 0, C, 8, kNone},
    {"xop", kExt, 0, C, 11, kYmm},
    {"lwp", kExt, 0, C, 15, kNone},
    {"fma4", kExt, 0, C, 16, kYmm},
    {"tbm", kExt, 0, C, 21, kNone},
    {"mwaitx", kExt, 0, C, 29, kNone},
    {"clzero", 0x80000008, 0, B, 0, kNone},
    {"rdpru", 0x80000008, 0, B, 4, kNone},
    {"wbnoinvd", 0x80000008, 0, B, 9, kNone},
    {"fsgsbase", 7, 0, B, 0, kNone},
    {"sgx", 7, 0, B, 2, kNone},
    {"bmi", 7, 0, B, 3, kNone},
    {"avx2", 7, 0, B, 5, kYmm},
    {"bmi2", 7, 0, B, 8, kNone},
    {"invpcid", 7, 0, B, 10, kNone},
    {"rtm", 7, 0, B, 11, kNone},
    {"avx512f", 7, 0, B, 16, kZmm},
    {"avx512dq", 7, 0, B, 17, kZmm},
    {"rdseed", 7, 0, B, 18, kNone},
    {"adx", 7, 0, B, 19, kNone},
    {"avx512ifma", 7, 0, B, 21, kZmm},
    {"clflushopt", 7, 0, B, 23, kNone},
    {"clwb", 7, 0, B, 24, kNone},
    {"avx512cd", 7, 0, B, 28, kZmm},
    {"sha", 7, 0, B, 29, kNone},
    {"avx512bw", 7, 0, B, 30, kZmm},
    {"avx512vl", 7, 0, B, 31, kZmm},
    {"avx512vbmi", 7, 0, C, 1, kZmm},
    {"pku", 7, 0, C, 4, kNone},
    {"waitpkg", 7, 0, C, 5, kNone},
    {"avx512vbmi2", 7, 0, C, 6, kZmm},
    {"shstk", 7, 0, C, 7, kNone},
    {"gfni", 7, 0, C, 8, kNone},
    {"vaes", 7, 0, C, 9, kYmm},
    {"vpclmulqdq", 7, 0, C, 10, kYmm},
    {"avx512vnni", 7, 0, C, 11, kZmm},
    {"avx512bitalg", 7, 0, C, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, C, 14, kZmm},
    {"rdpid", 7, 0, C, 22, kNone},
    {"cldemote", 7, 0, C, 25, kNone},
    {"movdiri", 7, 0, C, 27, kNone},
    {"movdir64b", 7, 0, C, 28, kNone},
    {"enqcmd", 7, 0, C, 29, kNone},
    {"uintr", 7, 0, D, 5, kNone},
    {"avx512vp2intersect", 7, 0, D, 8, kZmm},
    {"serialize", 7, 0, D, 14, kNone},
    {"tsxldtrk", 7, 0, D, 16, kNone},
    {"pconfig", 7, 0, D, 18, kNone},
    {"amx-bf16", 7, 0, D, 22, kTile},
    {"avx512fp16", 7, 0, D, 23, kZmm},
    {"amx-tile", 7, 0, D, 24, kTile},
    {"amx-int8", 7, 0, D, 25, kTile},
    {"sha512", 7, 1, A, 0, kYmm},
    {"sm3", 7, 1, A, 1, kYmm},
    {"sm4", 7, 1, A, 2, kYmm},
    {"raoint", 7, 1, A, 3, kNone},
    {"avxvnni", 7, 1, A, 4, kYmm},
    {"avx512bf16", 7, 1, A, 5, kZmm},
    {"cmpccxadd", 7, 1, A, 7, kNone},
    {"amx-fp16", 7, 1, A, 21, kTile},
    {"hreset", 7, 1, A, 22, kNone},
    {"avxifma", 7, 1, A, 23, kYmm},
    {"avxvnniint8", 7, 1, D, 4, kYmm},
    {"avxneconvert", 7, 1, D, 5, kYmm},
    {"amx-complex", 7, 1, D, 8, kTile},
    {"avxvnniint16", 7, 1, D, 10, kYmm},
    {"prefetchi", 7, 1, D, 14, kNone},
    {"usermsr", 7, 1, D, 15, kNone},
    {"xsaveopt", 0xd, 1, A, 0, kNone},
    {"xsavec", 0xd, 1, A, 1, kNone},
    {"xsaves", 0xd, 1, A, 3, kNone},
    {"ptwrite", 0x14, 0, B, 4, kNone},
};

/// Register state that the operating system saves (XCR0), or 0 without XSAVE.
uint64_t savedState() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

bool isSaved(State state) {
  static const uint64_t saved = savedState();
  constexpr uint64_t kMasks[] = {0, 0x6, 0xe6, 0x60000};
  return (saved & kMasks[state]) == kMasks[state];
}

bool isReported(const Feature &feature) {
  unsigned registers[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[A], &registers[B], &registers[C],
                         &registers[D]))
    return false;
  return registers[feature.reg] >> feature.bit & 1;
}

} // namespace

bool hasCpuFeature(const std::string &feature) {
  const auto *found = std::find_if(std::begin(kFeatures), std::end(kFeatures),
                                   [&](const Feature &f) { return f.name == feature; });
  return found != std::end(kFeatures) && isSaved(found->state) && isReported(*found);
}

Status checkCpuFeatures(const std::string &targetCpu, const std::vector<std::string> &features) {
  std::vector<std::string> missing;
  for (const std::string &feature : features)
    if (!hasCpuFeature(feature))
      missing.push_back(feature);
  if (missing.empty())
    return {};
  return Error{ExitCode::Device,
               fmt::format("the program is made for processor '{}', but this machine lacks {}", targetCpu,
                           fmt::join(missing, ", ")),
               "compile with --target-cpu set to this machine's processor, or to x86-64-v3"};
}

} // namespace ds::rt
