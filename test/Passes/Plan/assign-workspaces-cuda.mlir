// RUN: ds-opt %s --ds-set-machine=threads=2 --ds-assign-workspaces | FileCheck %s

// Programs for CUDA: what cuBLASLt and cuDNN may use are budgets on 256 bytes; other kernels say what they need.
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// 64 * 32 results * 4 bytes * 16 partial sums = 131072.
// CHECK-LABEL: @gives_a_product_room_for_partial_results
func.func @gives_a_product_room_for_partial_results(%a: !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, %b: !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, %c: !ds.buffer<tensor<64x32xbf16>, [32, 1], device>) {
  // CHECK-NEXT: %[[W:.*]] = ds.alloc workspace alignment 256 : !ds.buffer<tensor<131072xi8>, [1], device>
  // CHECK-NEXT: ds.call matmul({{.*}}) {{.*}}workspace(%[[W]]
  ds.call matmul(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, !ds.buffer<tensor<64x32xbf16>, [32, 1], device>
  return
}

// One result takes 4 * 16 bytes, rounded up to the alignment.
// CHECK-LABEL: @rounds_up
func.func @rounds_up(%a: !ds.buffer<tensor<1x48xf32>, [48, 1], device>, %b: !ds.buffer<tensor<1x48xf32>, [48, 1], device>, %c: !ds.buffer<tensor<1x1xf32>, [1, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<256xi8>, [1], device>
  ds.call matmul(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<1x48xf32>, [48, 1], device>, !ds.buffer<tensor<1x48xf32>, [48, 1], device>, !ds.buffer<tensor<1x1xf32>, [1, 1], device>
  return
}

// Logits of GPT-2 would ask for 3 GiB: 32 MiB are enough for sm_90.
// CHECK-LABEL: @knows_a_limit
func.func @knows_a_limit(%a: !ds.buffer<tensor<1024x768xbf16>, [768, 1], device>, %b: !ds.buffer<tensor<50257x768xbf16>, [768, 1], device>, %c: !ds.buffer<tensor<1024x50257xbf16>, [50257, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<33554432xi8>, [1], device>
  ds.call matmul(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<1024x768xbf16>, [768, 1], device>, !ds.buffer<tensor<50257x768xbf16>, [768, 1], device>, !ds.buffer<tensor<1024x50257xbf16>, [50257, 1], device>
  return
}

// Ids are sorted: 3 * 6 numbers, and counts of 16 bins for one tile and for all, (18 + 2 * 16) * 4 bytes.
// CHECK-LABEL: @gives_the_table_room_to_sort
func.func @gives_the_table_room_to_sort(%ids: !ds.buffer<tensor<2x3xi64>, [3, 1], device>, %g: !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, %t: !ds.buffer<tensor<10x6xbf16>, [6, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<200xi8>, [1], device>
  // CHECK-NEXT: ds.call embedding_backward
  ds.call embedding_backward(%ids, %g, %t) writes [2] params [0] on compute : !ds.buffer<tensor<2x3xi64>, [3, 1], device>, !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, !ds.buffer<tensor<10x6xbf16>, [6, 1], device>
  return
}

// Looking rows up needs nothing.
// CHECK-LABEL: @leaves_other_kernels_without
func.func @leaves_other_kernels_without(%ids: !ds.buffer<tensor<2x3xi64>, [3, 1], device>, %g: !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, %t: !ds.buffer<tensor<10x6xbf16>, [6, 1], device>) {
  // CHECK-NEXT: ds.call embedding_forward
  ds.call embedding_forward(%t, %ids, %g) writes [2] params [] on compute : !ds.buffer<tensor<10x6xbf16>, [6, 1], device>, !ds.buffer<tensor<2x3xi64>, [3, 1], device>, !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>
  return
}

// The term of each row: 4 * 4 bytes.
// CHECK-LABEL: @gives_a_loss_with_its_gradient_terms
func.func @gives_a_loss_with_its_gradient_terms(%x: !ds.buffer<tensor<4x6xbf16>, [6, 1], device>, %t: !ds.buffer<tensor<4xi64>, [1], device>, %g: !ds.buffer<tensor<f32>, [], device>, %l: !ds.buffer<tensor<f32>, [], device>, %c: !ds.buffer<tensor<f32>, [], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<16xi8>, [1], device>
  ds.call cross_entropy_with_gradient(%x, %t, %g, %l, %c, %x) writes [3, 4, 5] params [-100] on compute : !ds.buffer<tensor<4x6xbf16>, [6, 1], device>, !ds.buffer<tensor<4xi64>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<4x6xbf16>, [6, 1], device>
  return
}

// Counters and descriptors of an engine: 512 bytes.
// CHECK-LABEL: @gives_attention_a_little
func.func @gives_attention_a_little(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: %[[W:.*]] = ds.alloc workspace alignment 256 : !ds.buffer<tensor<512xi8>, [1], device>
  // CHECK-NEXT: ds.call attention_forward({{.*}}) {{.*}}workspace(%[[W]]
  ds.call attention_forward(%q, %k, %k, %q, %lse) writes [3, 4] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>
  return
}

// 4 bytes for each of 2 * 4 * 128 rows, 2 bytes for each of 2 * 4 * 128 * 128 scores, and 512: 266752.
// CHECK-LABEL: @gives_its_gradient_room_for_the_scores
func.func @gives_its_gradient_room_for_the_scores(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<266752xi8>, [1], device>
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>
  return
}

// 12 heads of 1024 * 1024 scores take 24 MiB a sample, their row sums 48 KiB. Of 64 samples 8 at once stay within 256 MiB:
// 8 * (25165824 + 49152) + 512 = 201720320.
// CHECK-LABEL: @cuts_large_batches
func.func @cuts_large_batches(%q: !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, %k: !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, %lse: !ds.buffer<tensor<64x12x1024xf32>, [12288, 1024, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<201720320xi8>, [1], device>
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x12x1024xf32>, [12288, 1024, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>
  return
}

// Eight key heads, each read by four heads of 8192 * 8192 scores: 4 * 128 MiB, 4 * 8192 * 4 for the rows, and for the
// gradients of keys and values of each head 4 * 4 * 8192 * 128, and 512: 553779712, one key head at once.
// CHECK-LABEL: @cuts_long_sequences
func.func @cuts_long_sequences(%q: !ds.buffer<tensor<1x8192x32x128xbf16>, [33554432, 4096, 128, 1], device>, %k: !ds.buffer<tensor<1x8192x8x128xbf16>, [8388608, 1024, 128, 1], device>, %lse: !ds.buffer<tensor<1x32x8192xf32>, [262144, 8192, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<553779712xi8>, [1], device>
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<1x8192x32x128xbf16>, [33554432, 4096, 128, 1], device>, !ds.buffer<tensor<1x8192x8x128xbf16>, [8388608, 1024, 128, 1], device>, !ds.buffer<tensor<1x8192x8x128xbf16>, [8388608, 1024, 128, 1], device>, !ds.buffer<tensor<1x8192x32x128xbf16>, [33554432, 4096, 128, 1], device>, !ds.buffer<tensor<1x32x8192xf32>, [262144, 8192, 1], device>, !ds.buffer<tensor<1x8192x32x128xbf16>, [33554432, 4096, 128, 1], device>, !ds.buffer<tensor<1x8192x32x128xbf16>, [33554432, 4096, 128, 1], device>, !ds.buffer<tensor<1x8192x8x128xbf16>, [8388608, 1024, 128, 1], device>, !ds.buffer<tensor<1x8192x8x128xbf16>, [8388608, 1024, 128, 1], device>
  return
}

// 2 GiB for the scores of one head: the runtime's kernels, which need nothing, do it.
// CHECK-LABEL: @leaves_very_long_sequences
func.func @leaves_very_long_sequences(%q: !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, %k: !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, %lse: !ds.buffer<tensor<1x4x32768xf32>, [131072, 32768, 1], device>) {
  // CHECK-NEXT: ds.call attention_backward
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x4x32768xf32>, [131072, 32768, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>, !ds.buffer<tensor<1x32768x4x64xbf16>, [8388608, 256, 64, 1], device>
  return
}

// CHECK-LABEL: @leaves_single_precision
func.func @leaves_single_precision(%q: !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: ds.call attention_backward
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xf32>, [32768, 256, 64, 1], device>
  return
}

// CHECK-LABEL: @leaves_odd_heads
func.func @leaves_odd_heads(%q: !ds.buffer<tensor<2x128x4x7xbf16>, [3584, 28, 7, 1], device>, %k: !ds.buffer<tensor<2x128x4x7xbf16>, [3584, 28, 7, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: ds.call attention_forward
  ds.call attention_forward(%q, %k, %k, %q, %lse) writes [3, 4] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x7xbf16>, [3584, 28, 7, 1], device>, !ds.buffer<tensor<2x128x4x7xbf16>, [3584, 28, 7, 1], device>, !ds.buffer<tensor<2x128x4x7xbf16>, [3584, 28, 7, 1], device>, !ds.buffer<tensor<2x128x4x7xbf16>, [3584, 28, 7, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>
  return
}

// CHECK-LABEL: @leaves_fewer_keys_than_queries
func.func @leaves_fewer_keys_than_queries(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: ds.call attention_forward
  ds.call attention_forward(%q, %k, %k, %q, %lse) writes [3, 4] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>
  return
}

// CHECK-LABEL: @takes_them_where_all_see_all
func.func @takes_them_where_all_see_all(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace
  ds.call attention_forward(%q, %k, %k, %q, %lse) writes [3, 4] params [0, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>
  return
}

// CHECK-LABEL: @takes_more_keys_than_queries
func.func @takes_more_keys_than_queries(%q: !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x64xf32>, [256, 64, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace
  ds.call attention_forward(%q, %k, %k, %q, %lse) writes [3, 4] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x64x4x64xbf16>, [16384, 256, 64, 1], device>, !ds.buffer<tensor<2x4x64xf32>, [256, 64, 1], device>
  return
}

// CHECK-LABEL: @takes_masks
func.func @takes_masks(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>, %mask: !ds.buffer<tensor<1x1x128x128xf32>, [16384, 16384, 128, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace {{.*}} : !ds.buffer<tensor<512xi8>
  ds.call attention_forward(%q, %q, %q, %q, %lse, %mask) writes [3, 4] params [0, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>, !ds.buffer<tensor<1x1x128x128xf32>, [16384, 16384, 128, 1], device>
  return
}

// Each head's part of the mask must start on 16 bytes.
// CHECK-LABEL: @leaves_masks_of_heads_at_odd_places
func.func @leaves_masks_of_heads_at_odd_places(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>, %mask: !ds.buffer<tensor<1x4x128x128xf32>, [65540, 16385, 128, 1], device>) {
  // CHECK-NEXT: ds.call attention_forward
  ds.call attention_forward(%q, %q, %q, %q, %lse, %mask) writes [3, 4] params [0, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>, !ds.buffer<tensor<1x4x128x128xf32>, [65540, 16385, 128, 1], device>
  return
}

// Copies with channels last, 3 and 4 of them made 8: (2 * 8 * 64 + 8 * 8 * 9 + 2 * 8 * 16) * 2 + 65536 = 69248, which
// is 69376 in whole 256 bytes, for the convolution and each of its gradients.
// CHECK-LABEL: @turns_the_operands_of_convolutions_over
func.func @turns_the_operands_of_convolutions_over(%x: !ds.buffer<tensor<2x3x8x8xbf16>, [192, 64, 8, 1], device>, %w: !ds.buffer<tensor<4x3x3x3xbf16>, [27, 9, 3, 1], device>, %y: !ds.buffer<tensor<2x4x4x4xbf16>, [64, 16, 4, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace {{.*}}: !ds.buffer<tensor<69376xi8>, [1], device>
  // CHECK-NEXT: ds.call conv_forward
  // CHECK-NEXT: ds.alloc workspace {{.*}}: !ds.buffer<tensor<69376xi8>, [1], device>
  // CHECK-NEXT: ds.call conv_backward_input
  // CHECK-NEXT: ds.alloc workspace {{.*}}: !ds.buffer<tensor<69376xi8>, [1], device>
  // CHECK-NEXT: ds.call conv_backward_weight
  ds.call conv_forward(%x, %w, %y) writes [2] params [1, 2, 1, 1, 2, 1, 1] on compute : !ds.buffer<tensor<2x3x8x8xbf16>, [192, 64, 8, 1], device>, !ds.buffer<tensor<4x3x3x3xbf16>, [27, 9, 3, 1], device>, !ds.buffer<tensor<2x4x4x4xbf16>, [64, 16, 4, 1], device>
  ds.call conv_backward_input(%w, %y, %x) writes [2] params [1, 2, 1, 1, 2, 1, 1] on compute : !ds.buffer<tensor<4x3x3x3xbf16>, [27, 9, 3, 1], device>, !ds.buffer<tensor<2x4x4x4xbf16>, [64, 16, 4, 1], device>, !ds.buffer<tensor<2x3x8x8xbf16>, [192, 64, 8, 1], device>
  ds.call conv_backward_weight(%x, %y, %w) writes [2] params [1, 2, 1, 1, 2, 1, 1] on compute : !ds.buffer<tensor<2x3x8x8xbf16>, [192, 64, 8, 1], device>, !ds.buffer<tensor<2x4x4x4xbf16>, [64, 16, 4, 1], device>, !ds.buffer<tensor<4x3x3x3xbf16>, [27, 9, 3, 1], device>
  return
}

// CHECK-LABEL: @leaves_convolutions_over_three_dimensions
func.func @leaves_convolutions_over_three_dimensions(%x: !ds.buffer<tensor<1x2x4x4x4xbf16>, [128, 64, 16, 4, 1], device>, %w: !ds.buffer<tensor<3x2x1x1x1xbf16>, [2, 1, 1, 1, 1], device>, %y: !ds.buffer<tensor<1x3x4x4x4xbf16>, [192, 64, 16, 4, 1], device>) {
  // CHECK-NEXT: ds.call conv_forward
  ds.call conv_forward(%x, %w, %y) writes [2] params [1, 1, 0, 1, 1, 0, 1, 1, 0, 1] on compute : !ds.buffer<tensor<1x2x4x4x4xbf16>, [128, 64, 16, 4, 1], device>, !ds.buffer<tensor<3x2x1x1x1xbf16>, [2, 1, 1, 1, 1], device>, !ds.buffer<tensor<1x3x4x4x4xbf16>, [192, 64, 16, 4, 1], device>
  return
}

// 40000 numbers are 3 blocks of 16384, 16384 are one, none are none: 4 sums of 4 bytes.
// CHECK-LABEL: @keeps_the_sums_of_blocks
func.func @keeps_the_sums_of_blocks(%x: !ds.buffer<tensor<200x200xbf16>, [200, 1], device>, %y: !ds.buffer<tensor<16384xf32>, [1], device>, %z: !ds.buffer<tensor<4x0xf32>, [0, 1], device>, %s: !ds.buffer<tensor<f64>, [], device>) {
  // CHECK-NEXT: %[[W:.*]] = ds.alloc workspace alignment 256 : !ds.buffer<tensor<16xi8>, [1], device>
  // CHECK-NEXT: ds.call sum_of_squares({{.*}}) {{.*}}workspace(%[[W]]
  ds.call sum_of_squares(%x, %y, %z, %s) writes [3] params [] on compute : !ds.buffer<tensor<200x200xbf16>, [200, 1], device>, !ds.buffer<tensor<16384xf32>, [1], device>, !ds.buffer<tensor<4x0xf32>, [0, 1], device>, !ds.buffer<tensor<f64>, [], device>
  return
}
}
