//===- collectives.cpp - Bandwidth of collectives between ranks of this machine ---===//
//
//   collectives [--ranks N] [--megabytes M] [--repeats R] [--mesh AXIS=N,AXIS=N...]
//
// All-gather, reduce-scatter and all-reduce of M megabytes (the whole vector) over N local ranks, beside a
// copy of the same bytes by every rank at the same time: no exchange through memory can be faster than the
// copies it consists of. Each figure is the median over R repeats of the slowest rank's time.
//
// With a mesh, an all-gather of M megabytes along each of its axes instead, all groups at once, and along all
// of them together: on several nodes, what their network is and what a node is inside.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Launch/Launch.h"
#include "ds/Runtime/Program/Program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace ds;
using namespace ds::rt;

struct Options {
  uint32_t ranks = 2;
  uint64_t megabytes = 64;
  uint32_t repeats = 9;
  std::optional<Mesh> mesh;
};

/// "dp.node=2,dp.local=2", slowest first.
Mesh parseMesh(const std::string &text) {
  std::vector<MeshAxis> axes;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    axes.push_back({part.substr(0, equals), static_cast<uint32_t>(std::stoul(part.substr(equals + 1)))});
  }
  return Mesh(std::move(axes));
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--mesh") {
      options.mesh = parseMesh(argv[i + 1]);
      options.ranks = options.mesh->size();
      continue;
    }
    const uint64_t value = std::stoull(argv[i + 1]);
    if (name == "--ranks")
      options.ranks = static_cast<uint32_t>(value);
    else if (name == "--megabytes")
      options.megabytes = value;
    else if (name == "--repeats")
      options.repeats = static_cast<uint32_t>(value);
  }
  return options;
}

[[noreturn]] void give(const Error &error) {
  std::fprintf(stderr, "collectives: %s\n", error.message.c_str());
  std::exit(static_cast<int>(error.code));
}

/// What one run of a body takes, as medians: seconds of the slowest rank, and processor seconds of this one
/// with all its threads.
struct Cost {
  double seconds, cpuSeconds;
};

double processorSeconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Cost measure(RankGroup &group, uint32_t repeats, const std::function<Status()> &body) {
  std::vector<double> times, cpuTimes;
  for (uint32_t repeat = 0; repeat <= repeats; ++repeat) {
    if (Status status = group.channel(0).barrier("start"); !status)
      give(status.error());
    const double cpuBegin = processorSeconds();
    const auto begin = std::chrono::steady_clock::now();
    if (Status status = body(); !status)
      give(status.error());
    float seconds = std::chrono::duration<float>(std::chrono::steady_clock::now() - begin).count();
    const double cpuSeconds = processorSeconds() - cpuBegin;
    std::byte staging[4096];
    if (Status status =
            group.channel(0).allReduce(&seconds, &seconds, staging, 1, DType::F32, Reduction::Max, "time");
        !status)
      give(status.error());
    if (repeat == 0) // touches the memory
      continue;
    times.push_back(seconds);
    cpuTimes.push_back(cpuSeconds);
  }
  return {median(times), median(cpuTimes)};
}

void print(const RankGroup &group, const char *name, CollectiveKind kind, uint64_t bytes, Cost cost) {
  CommStat stat{kind, name, group.world(), 1, bytes, cost.seconds};
  if (group.rank() == 0)
    std::printf("%-16s %9.3f ms (processor %9.3f ms)   algorithm %7.2f GB/s   bus %7.2f GB/s\n", name,
                cost.seconds * 1e3, cost.cpuSeconds * 1e3, stat.algorithmBandwidth() * 1e-9,
                stat.busBandwidth() * 1e-9);
}

void run(RankGroup &group, const Options &options) {
  const uint32_t world = group.world();
  const uint64_t part = options.megabytes * 1000000 / 4 / world, bytes = part * 4 * world;
  std::vector<float> full(part * world, 1), out(part * world, 0);
  const Collective scatter{CollectiveKind::ReduceScatter, Reduction::Sum, DType::F32, part, {}, ""};
  std::vector<std::byte> staging(collectiveStagingBytes(scatter, world));
  Communicator &channel = group.channel(0);
  if (group.rank() == 0)
    std::printf("%u ranks, transport %s\n", world, group.transport().c_str());
  // What a rank receives of a gather, (n - 1) parts, copied once.
  const uint64_t received = part * 4 * (world - 1);
  print(group, "memcpy", CollectiveKind::AllGather, bytes, measure(group, options.repeats, [&] {
          std::memcpy(out.data(), full.data(), received);
          return Status();
        }));
  print(group, "all_gather", CollectiveKind::AllGather, bytes, measure(group, options.repeats, [&] {
          return channel.allGather(full.data() + group.rank() * part, full.data(), part * 4, "gather");
        }));
  print(group, "reduce_scatter", CollectiveKind::ReduceScatter, bytes, measure(group, options.repeats, [&] {
          return channel.reduceScatter(full.data(), out.data(), staging.data(), part, DType::F32,
                                       Reduction::Sum, "scatter");
        }));
  print(group, "all_reduce", CollectiveKind::AllReduce, bytes, measure(group, options.repeats, [&] {
          return channel.allReduce(full.data(), out.data(), staging.data(), part * world, DType::F32,
                                   Reduction::Sum, "reduce");
        }));
  float one = 1;
  print(group, "all_reduce of 1", CollectiveKind::AllReduce, 4, measure(group, 200, [&] {
          return channel.allReduce(&one, &one, staging.data(), 1, DType::F32, Reduction::Max, "one");
        }));
}

/// Of the vector that a group gathers, each rank receives what it does not have itself.
void runAlong(RankGroup &group, const Options &options, AxisSet axes) {
  const Mesh &mesh = *options.mesh;
  Communicator &some = group.subset(0, mesh.group(group.rank(), axes));
  const uint64_t part = options.megabytes * 1000000 / some.size();
  std::vector<std::byte> full(part * some.size());
  const Cost cost = measure(group, options.repeats, [&] {
    return some.allGather(full.data() + some.position() * part, full.data(), part, "gather");
  });
  std::string names;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (axes.has(axis))
      names += (names.empty() ? "" : ",") + mesh.axes()[axis].name;
  if (group.rank() == 0)
    std::printf("all_gather along %s of %u ranks  %9.3f ms   received %9.2f MB/s\n", names.c_str(),
                some.size(), cost.seconds * 1e3,
                static_cast<double>(part * (some.size() - 1)) / cost.seconds * 1e-6);
}

void runMesh(RankGroup &group, const Options &options) {
  const Mesh &mesh = *options.mesh;
  if (const std::string mistake = mesh.findMistake(group.world()); !mistake.empty())
    give(Error{ExitCode::Usage, "--mesh " + mesh.spell() + ": " + mistake, {}});
  if (group.rank() == 0)
    std::printf("mesh %s, transport %s\n", mesh.spell().c_str(), group.transport().c_str());
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    runAlong(group, options, AxisSet({axis}));
  runAlong(group, options, mesh.all());
}

} // namespace

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  const Result<RankIdentity> place = findRankIdentity();
  if (!place)
    give(place.error());
  if (place->kind == RankIdentity::Kind::Alone) {
    LaunchOptions launch;
    launch.ranks = options.ranks;
    return launchRanks(launch, argv).code;
  }
  Result<std::unique_ptr<RankGroup>> group = connect(*place, {});
  if (!group)
    give(group.error());
  if (options.mesh)
    runMesh(**group, options);
  else
    run(**group, options);
  if (Status status = (*group)->finish(); !status)
    give(status.error());
  return 0;
}
