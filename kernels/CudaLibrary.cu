//===- CudaLibrary.cu - All kernels of the CUDA library in one image -----------===//
#include "Attention.cu"
#include "Conv.cu"
#include "CrossEntropy.cu"
#include "Embedding.cu"
#include "FillCopy.cu"
#include "Gelu.cu"
#include "Random.cu"
#include "SumOfSquares.cu"
