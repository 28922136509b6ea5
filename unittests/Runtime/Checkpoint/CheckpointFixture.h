//===- CheckpointFixture.h - Ranks without processes that save and read ---------------===//
//
// A small model on any mesh whose states are arrays in this process. Saving does for each rank in turn what
// ranks do together.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CHECKPOINT_CHECKPOINTFIXTURE_H
#define DS_UNITTESTS_RUNTIME_CHECKPOINT_CHECKPOINTFIXTURE_H

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/ShardPlan.h"
#include "ds/Runtime/Checkpoint/ShardWriter.h"
#include "ds/Runtime/Checkpoint/Store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

namespace ds::rt::test {

namespace fs = std::filesystem;

/// A model's states on a mesh. All are f32; element e of state s has the value s * 10000 + e + version / 8.
class Model {
public:
  explicit Model(Mesh mesh) {
    program.mesh = std::move(mesh);
    program.world = program.mesh.size();
    program.planHash = "plan";
    program.target = "cpu";
  }

  /// A state of this layout; `offset` and shards only where there is a bucket.
  void add(const std::string &name, std::vector<int64_t> shape, Layout layout = {},
           Role role = Role::Parameter, const std::string &owner = "") {
    Buffer buffer;
    program.buffers.push_back(buffer);
    State state;
    state.name = name;
    state.role = role;
    state.owner = owner;
    state.logicalShape = std::move(shape);
    state.buffer = static_cast<uint32_t>(program.buffers.size() - 1);
    state.layout = std::move(layout);
    program.states.push_back(std::move(state));
  }

  /// A parameter with moments, cut flat along dp.
  void addZero(const std::string &name, const std::vector<int64_t> &shape) {
    uint64_t elements = 1;
    for (int64_t size : shape)
      elements *= static_cast<uint64_t>(size);
    const AxisSet dp = program.mesh.find("dp").value();
    const uint64_t ranks = program.mesh.size(dp);
    Layout layout;
    layout.bucket = dp;
    layout.offset = 3; // something else comes first
    layout.shardElements = (elements + 3 + ranks - 1) / ranks;
    add(name, shape, layout);
    add(name + ".exp_avg", shape, layout, Role::Moment, name);
  }

  float value(size_t state, uint64_t element, int version) const {
    return static_cast<float>(state * 10000 + element) + static_cast<float>(version) / 8;
  }

  /// What a rank's buffer of a state holds.
  std::vector<float> memory(size_t number, uint32_t rank, int version) const {
    const State &state = program.states[number];
    const HeldElements held = heldElements(program.mesh, state.layout, state.logicalShape, rank);
    std::vector<float> values(held.at + held.count, -1);
    ElementRuns runs(program.mesh, state.layout, state.logicalShape, rank);
    while (const std::optional<ElementRun> run = runs.next())
      for (uint64_t i = 0; i < run->count; ++i)
        values[run->at + i] = value(number, run->first + i, version);
    return values;
  }

  size_t number(const std::string &name) const {
    size_t i = 0;
    while (program.states[i].name != name)
      ++i;
    return i;
  }

  Program program;
};

/// States of many layouts on `dp` ranks, each held along `tp` others where there are any.
inline Model modelOf(uint32_t dp, uint32_t tp = 1) {
  Model model(tp == 1 ? Mesh{{"dp", dp}} : Mesh{{"dp", dp}, {"tp", tp}});
  model.addZero("a", {7, 11});
  model.addZero("b", {3, 4, 5});
  model.add("c", {64, 300}); // replicated, large enough to be divided
  model.add("d", {5});
  model.add("step", {}, {}, Role::Scalar);
  model.add("empty", {0, 4});
  Layout cut;
  if (tp > 1) {
    cut.cuts = {AxisSet(), model.program.mesh.find("tp").value()};
    Layout both = cut;
    both.bucket = model.program.mesh.find("dp").value();
    both.shardElements = (6 * 8 / tp + dp - 1) / dp;
    model.add("e", {6, 8}, cut);
    model.add("f", {6, 8}, both);
  } else {
    model.add("e", {6, 8});
    model.add("f", {6, 8});
  }
  return model;
}

/// Writes what one rank writes.
inline Result<std::vector<CheckpointFile>> writeRank(FileLayer &layer, const Model &model, uint32_t rank,
                                                     const std::string &directory, int version,
                                                     uint64_t chunkBytes, uint32_t threads = 0,
                                                     std::span<const uint32_t> node = {}) {
  std::vector<CheckpointFile> done;
  const Result<std::vector<ShardFile>> files = planShards(model.program, rank, node);
  if (!files)
    return files.error();
  StagedWriter staged(layer, {threads, size_t(1) << 14});
  for (const ShardFile &file : *files) {
    Result<ShardWriter> writer = ShardWriter::create(layer, staged, directory, file.name,
                                                     file.header.size() + file.dataBytes, chunkBytes);
    if (!writer)
      return writer.error();
    Status status = writer->write(std::as_bytes(std::span(file.header)));
    for (const ShardPiece &piece : file.pieces) {
      const std::vector<float> memory = model.memory(model.number(piece.state), rank, version);
      const uint64_t bytes = piece.bytes / piece.runs();
      for (uint64_t run = 0; run < piece.runs() && status; ++run)
        status =
            writer->write(std::as_bytes(std::span(memory)).subspan(piece.runAt(run) * sizeof(float), bytes));
    }
    if (!status)
      return status.error();
    Result<CheckpointFile> finished = writer->finish();
    if (!finished)
      return finished.error();
    done.push_back(std::move(*finished));
  }
  if (const int failure = layer.syncDirectory(directory))
    return Error{ExitCode::Io, std::strerror(failure), ""};
  return done;
}

inline Manifest manifestOf(const Model &model, uint64_t step, uint64_t chunkBytes) {
  Manifest manifest;
  manifest.step = step;
  manifest.writer = "test";
  manifest.mesh = model.program.mesh;
  manifest.planHash = model.program.planHash;
  manifest.target = model.program.target;
  manifest.chunkBytes = chunkBytes;
  manifest.tensors = checkpointTensors(model.program);
  return manifest;
}

/// Saves `model` as all ranks together do, values of version `step`.
inline Result<std::string> save(FileLayer &layer, const Model &model, const std::string &root, uint64_t step,
                                uint64_t chunkBytes = 64, uint32_t threads = 0) {
  const Result<std::string> unfinished = beginSave(layer, root, step);
  if (!unfinished)
    return unfinished.error();
  Manifest manifest = manifestOf(model, step, chunkBytes);
  for (uint32_t rank = 0; rank < model.program.world; ++rank) {
    Result<std::vector<CheckpointFile>> files =
        writeRank(layer, model, rank, *unfinished, static_cast<int>(step), chunkBytes, threads);
    if (!files) {
      static_cast<void>(removeCheckpoint(layer, *unfinished));
      return files.error();
    }
    manifest.files.insert(manifest.files.end(), files->begin(), files->end());
  }
  return commitSave(layer, root, *unfinished, manifest);
}

/// Saves the part of one of `nodes` in its directory, as its ranks do.
inline Result<std::string> savePart(const Model &model, const std::string &root,
                                    const std::vector<CheckpointNode> &nodes, uint32_t number, uint64_t step,
                                    const std::string &letters = "letters") {
  const Result<std::string> unfinished = beginSave(systemFiles(), root, step);
  if (!unfinished)
    return unfinished.error();
  Manifest manifest = manifestOf(model, step, /*chunkBytes=*/64);
  manifest.save = letters;
  manifest.nodes = nodes;
  manifest.parts = {number};
  for (const uint32_t rank : nodes[number].ranks) {
    Result<std::vector<CheckpointFile>> files =
        writeRank(systemFiles(), model, rank, *unfinished, static_cast<int>(step), manifest.chunkBytes,
                  /*threads=*/0, nodes[number].ranks);
    if (!files)
      return files.error();
    manifest.files.insert(manifest.files.end(), files->begin(), files->end());
  }
  return commitSave(systemFiles(), root, *unfinished, manifest);
}

/// Compares what one rank of `model` reads from a checkpoint of version `version` with what it should hold.
inline void expectReads(const Model &model, const Checkpoint &checkpoint, int version, uint32_t rank) {
  for (size_t i = 0; i < model.program.states.size(); ++i) {
    const State &state = model.program.states[i];
    const CheckpointTensor *tensor = checkpoint.find(state.name);
    ASSERT_TRUE(tensor) << state.name;
    std::vector<float> expected = model.memory(i, rank, version), read(expected.size(), -1);
    ElementRuns runs(model.program.mesh, state.layout, state.logicalShape, rank);
    while (const std::optional<ElementRun> run = runs.next()) {
      const Status status = checkpoint.read(*tensor, run->first, run->count,
                                            reinterpret_cast<std::byte *>(read.data() + run->at));
      ASSERT_TRUE(status) << status.error().message;
    }
    ASSERT_EQ(read, expected) << state.name << " on rank " << rank;
  }
}
inline void expectReads(const Model &model, const Checkpoint &checkpoint, int version) {
  for (uint32_t rank = 0; rank < model.program.world; ++rank)
    expectReads(model, checkpoint, version, rank);
}

class CheckpointFixture : public testing::Test {
protected:
  explicit CheckpointFixture(const std::string &parent = "/tmp") {
    std::string pattern = parent + "/ds-checkpoint-test-XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  ~CheckpointFixture() override { fs::remove_all(root); }

  static std::string readText(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void writeText(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  std::string root;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_CHECKPOINT_CHECKPOINTFIXTURE_H
