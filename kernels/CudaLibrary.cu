//===- CudaLibrary.cu - All kernels of the CUDA library in one image -----------===//
#include "Attention.cu"
#include "CrossEntropy.cu"
#include "Embedding.cu"
#include "FillCopy.cu"
#include "Random.cu"
