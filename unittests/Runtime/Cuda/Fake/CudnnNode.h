//===- CudnnNode.h - Descriptors and graphs of the fake cuDNN ----------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_CUDNNNODE_H
#define DS_UNITTESTS_RUNTIME_CUDA_CUDNNNODE_H

#include <cudnn_graph.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace ds::rt::fake {

/// A descriptor: attributes by name, as 8-byte words or other descriptors.
struct Node {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, std::vector<int64_t>> words = {};
  std::map<int, std::vector<std::shared_ptr<Node>>> children = {};

  void set(int name, cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    const bool wide = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_HANDLE;
    const int64_t bytes = wide ? 8 : type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR ? 1 : 4;
    std::vector<int64_t> &list = words[name];
    list.assign(static_cast<size_t>(count), 0);
    for (size_t i = 0; i < list.size(); ++i)
      std::memcpy(&list[i], static_cast<const char *>(values) + i * static_cast<size_t>(bytes),
                  static_cast<size_t>(bytes));
  }
  void setNumber(int name, int64_t value) { words[name] = {value}; }
  /// All words of an attribute; none if it is not set.
  std::vector<int64_t> numbers(int name) const {
    const auto found = words.find(name);
    return found == words.end() ? std::vector<int64_t>{} : found->second;
  }
  /// The first word of an attribute, 0 if it is not set.
  int64_t number(int name) const {
    const std::vector<int64_t> list = numbers(name);
    return list.empty() ? 0 : list[0];
  }
  /// The first descriptor of an attribute; null if it is not set.
  std::shared_ptr<Node> child(int name) const {
    const auto found = children.find(name);
    return found == children.end() || found->second.empty() ? nullptr : found->second[0];
  }
};

/// One execution of a graph.
struct CudnnRun {
  std::shared_ptr<Node> graph;
  std::map<int64_t, void *> places;             ///< of memory, by tensor
  std::map<int64_t, float> scalars;             ///< by tensor; host memory is read when a run is asked for
  std::map<int64_t, std::vector<float>> values; ///< row-major, by tensor

  /// Reads the scalars; false if a tensor of memory has no place, or not on 16 bytes.
  bool readScalars();
  /// Runs the operations in the order in which they are listed; false if one needs what is not computed yet.
  bool compute();

private:
  bool convolve(const Node &operation);
  bool multiply(const Node &operation);
  bool reduce(const Node &operation);
  bool reshape(const Node &operation);
  bool pointwise(const Node &operation);
  bool read(const std::shared_ptr<Node> &tensor, std::vector<float> &into);
  void write(const Node &tensor, std::vector<float> computed);
};

} // namespace ds::rt::fake

#endif // DS_UNITTESTS_RUNTIME_CUDA_CUDNNNODE_H
