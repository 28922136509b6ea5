// RUN: ds-opt %s --ds-assign-workspaces=threads=2 | FileCheck %s

// Programs for CUDA: what cuBLASLt may use is a budget on 256 bytes; nothing else needs scratch memory.
module attributes {ds.target = "cuda:sm_90"} {
// 64 * 32 results * 4 bytes * 16 partial sums = 131072.
// CHECK-LABEL: @gives_a_product_room_for_partial_results
func.func @gives_a_product_room_for_partial_results(%a: !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, %b: !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, %c: !ds.buffer<tensor<64x32xbf16>, [32, 1], device>) {
  // CHECK-NEXT: %[[W:.*]] = ds.alloc "workspace" {ds.alignment = 256 : i64} : !ds.buffer<tensor<131072xi8>, [1], device>
  // CHECK-NEXT: ds.call "matmul"({{.*}}) {{.*}}workspace(%[[W]]
  ds.call "matmul"(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, !ds.buffer<tensor<64x32xbf16>, [32, 1], device>
  return
}

// One result takes 4 * 16 bytes, rounded up to the alignment.
// CHECK-LABEL: @rounds_up
func.func @rounds_up(%a: !ds.buffer<tensor<1x48xf32>, [48, 1], device>, %b: !ds.buffer<tensor<1x48xf32>, [48, 1], device>, %c: !ds.buffer<tensor<1x1xf32>, [1, 1], device>) {
  // CHECK-NEXT: ds.alloc "workspace" {ds.alignment = 256 : i64} : !ds.buffer<tensor<256xi8>, [1], device>
  ds.call "matmul"(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<1x48xf32>, [48, 1], device>, !ds.buffer<tensor<1x48xf32>, [48, 1], device>, !ds.buffer<tensor<1x1xf32>, [1, 1], device>
  return
}

// Logits of GPT-2 would ask for 3 GiB: 32 MiB are enough for sm_90.
// CHECK-LABEL: @knows_a_limit
func.func @knows_a_limit(%a: !ds.buffer<tensor<1024x768xbf16>, [768, 1], device>, %b: !ds.buffer<tensor<50257x768xbf16>, [768, 1], device>, %c: !ds.buffer<tensor<1024x50257xbf16>, [50257, 1], device>) {
  // CHECK-NEXT: ds.alloc "workspace" {ds.alignment = 256 : i64} : !ds.buffer<tensor<33554432xi8>, [1], device>
  ds.call "matmul"(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<1024x768xbf16>, [768, 1], device>, !ds.buffer<tensor<50257x768xbf16>, [768, 1], device>, !ds.buffer<tensor<1024x50257xbf16>, [50257, 1], device>
  return
}

// The kernel adds rows in index order without sorting.
// CHECK-LABEL: @leaves_other_kernels_without
func.func @leaves_other_kernels_without(%ids: !ds.buffer<tensor<2x3xi64>, [3, 1], device>, %g: !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, %t: !ds.buffer<tensor<10x6xbf16>, [6, 1], device>) {
  // CHECK-NEXT: ds.call "embedding_backward"
  ds.call "embedding_backward"(%ids, %g, %t) writes [2] params [0] on compute : !ds.buffer<tensor<2x3xi64>, [3, 1], device>, !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, !ds.buffer<tensor<10x6xbf16>, [6, 1], device>
  return
}
}
