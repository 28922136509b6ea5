//===- Context.h - What all parts of a calibration share --------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_CONTEXT_H
#define DS_LIB_RUNTIME_CALIBRATE_CONTEXT_H

#include "Figures.h"
#include "Workbench.h"

#include "ds/Runtime/Comm/Communicator.h"

namespace ds::rt {

/// How often the system has taken a processor from a thread of this process that could have gone on.
int64_t countPreemptions();

/// The processor's name, as the system tells it.
std::string processorName();

/// One calibration on one rank. All ranks measure the same things at the same time, as they run a step, and a
/// figure is that of the slowest.
struct Calibration {
  bool quick = false;
  uint32_t threads = 1; ///< of this rank
  RankGroup *group = nullptr;
  CalibrationClock clock;
  std::function<int64_t()> preemptions = countPreemptions; ///< tests bring their own
  std::string date, processor;
  std::string storageDirectory;   ///< where a temporary file may be written
  std::string nvmeDirectory = {}; ///< of the disk that states are to be offloaded to; empty: not named
  Pool pool;
  Figures figures;
  double launchSeconds = 0, forkSeconds = 0; ///< measured first, to be taken off what follows
  double peakFlops = 0;                      ///< of fp32, in registers
  double memoryRate = 0;                     ///< bytes per second of a streaming kernel
  int64_t begin = 0;                         ///< of the whole calibration, by the clock
  double elapsed = 0;                        ///< since then, when ranks last agreed
  double worstSpread = 0;
  std::string worstFigure;

  bool leads() const { return group->rank() == 0; }
  uint32_t world() const { return group->world(); }
  SamplingOptions sampling() const;

  /// A line of progress, from the first rank.
  void progress(const std::string &what) const;

  /// Runs `measure` on all ranks at the same time; the sample is that of the slowest. Where it scatters, or a
  /// thread lost its processor (all runs are slow alike then: threads wait for each other), others use the
  /// machine: then again, a few times and a little later, and the fastest counts, for they can only make it
  /// slower.
  Result<Sample> measure(const std::string &figure, const std::function<Result<Sample>()> &measure);
  /// The same for a command of a workbench.
  Result<Sample> measure(const std::string &figure, Workbench &bench, uint32_t command);

  Status start();
  Status agree(Sample &sample, int64_t &preempted);

  /// "measured 2026-11-21, PROCESSOR, spread 3 %".
  std::string provenance(double spread) const;
};

/// Each adds its figures. In this order: the first one's are taken off the others'.
Status measureLaunches(Calibration &calibration);
Status measureMemory(Calibration &calibration);
Status measureProducts(Calibration &calibration);
Status measureAttention(Calibration &calibration);
Status measureFunctions(Calibration &calibration);
Status measureHost(Calibration &calibration);
Status measureExchanges(Calibration &calibration);
Status measureStorage(Calibration &calibration);
/// The same of `nvmeDirectory`, in all the ways in which a run could drive it. On the first rank.
Status tuneStorage(Calibration &calibration);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_CONTEXT_H
