// RUN: ds-opt %s --ds-set-machine=threads=2 --ds-assign-workspaces | FileCheck %s

// Products have a library that asks for scratch memory, and 16-bit gradients are summed in it.
// CHECK-LABEL: @keeps_calls_without_scratch_memory
func.func @keeps_calls_without_scratch_memory(%a: !ds.buffer<tensor<4xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>) {
  // CHECK-NOT: ds.alloc
  // CHECK: ds.call copy(%arg0, %arg1) writes [1] params [] on compute
  ds.call copy(%a, %b) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// A 16-bit product gets room for f32 blocks of its operands, so that it runs on processors without its instructions.
// CHECK-LABEL: @gives_a_product_what_its_library_asks_for
func.func @gives_a_product_what_its_library_asks_for(%a: !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, %b: !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, %c: !ds.buffer<tensor<64x32xbf16>, [32, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace : !ds.buffer<tensor<{{[1-9][0-9]*}}xi8>, [1], device>
  // CHECK-NEXT: ds.call matmul
  // CHECK: return
  ds.call matmul(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, !ds.buffer<tensor<64x32xbf16>, [32, 1], device>
  return
}

// Two gradients, two threads, 24 keys of 16 numbers, 4 bytes each: 6144.
// CHECK-LABEL: @sums_the_gradients_of_keys_in_single_precision
func.func @sums_the_gradients_of_keys_in_single_precision(%q: !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, %lse: !ds.buffer<tensor<1x2x24xf32>, [48, 24, 1], device>) {
  // CHECK-NEXT: %[[W:.*]] = ds.alloc workspace : !ds.buffer<tensor<6144xi8>, [1], device>
  // CHECK-NEXT: ds.call attention_backward({{.*}}) {{.*}}workspace(%[[W]]
  ds.call attention_backward(%q, %q, %q, %q, %lse, %q, %q, %q, %q) writes [6, 7, 8] params [1, 2.500000e-01] on compute : !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x2x24xf32>, [48, 24, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>, !ds.buffer<tensor<1x24x2x16xf16>, [768, 32, 16, 1], device>
  return
}

// Six ids are sorted by way of two lists of i32: 48 bytes. A table of f32 is added to where it lies.
// CHECK-LABEL: @sorts_the_ids_of_a_narrow_table
func.func @sorts_the_ids_of_a_narrow_table(%ids: !ds.buffer<tensor<2x3xi64>, [3, 1], device>, %g: !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, %t: !ds.buffer<tensor<10x6xbf16>, [6, 1], device>, %w: !ds.buffer<tensor<10x6xf32>, [6, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace : !ds.buffer<tensor<48xi8>, [1], device>
  // CHECK-NEXT: ds.call embedding_backward
  // CHECK-NEXT: ds.call embedding_backward
  ds.call embedding_backward(%ids, %g, %t) writes [2] params [0] on compute : !ds.buffer<tensor<2x3xi64>, [3, 1], device>, !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, !ds.buffer<tensor<10x6xbf16>, [6, 1], device>
  ds.call embedding_backward(%ids, %g, %w) writes [2] params [0] on compute : !ds.buffer<tensor<2x3xi64>, [3, 1], device>, !ds.buffer<tensor<2x3x6xbf16>, [18, 6, 1], device>, !ds.buffer<tensor<10x6xf32>, [6, 1], device>
  return
}

// oneDNN computes in f32: its own part comes first, then copies of 384, 108 and 128 numbers in lines of 64 bytes:
// 1536 + 448 + 512 = 2496 at the least.
// CHECK-LABEL: @widens_a_convolution
func.func @widens_a_convolution(%x: !ds.buffer<tensor<2x3x8x8xbf16>, [192, 64, 8, 1], device>, %w: !ds.buffer<tensor<4x3x3x3xbf16>, [27, 9, 3, 1], device>, %y: !ds.buffer<tensor<2x4x4x4xbf16>, [64, 16, 4, 1], device>) {
  // CHECK-NEXT: %[[S:.*]] = ds.alloc workspace : !ds.buffer<tensor<{{[0-9]+}}xi8>, [1], device>
  // CHECK-NEXT: ds.call conv_forward({{.*}}) {{.*}}workspace(%[[S]]
  ds.call conv_forward(%x, %w, %y) writes [2] params [1, 2, 1, 1, 2, 1, 1] on compute : !ds.buffer<tensor<2x3x8x8xbf16>, [192, 64, 8, 1], device>, !ds.buffer<tensor<4x3x3x3xbf16>, [27, 9, 3, 1], device>, !ds.buffer<tensor<2x4x4x4xbf16>, [64, 16, 4, 1], device>
  return
}

// 40000 numbers are 3 blocks of 16384, 16384 are one, none are none: 4 sums of 4 bytes.
// CHECK-LABEL: @keeps_the_sums_of_blocks
func.func @keeps_the_sums_of_blocks(%x: !ds.buffer<tensor<200x200xbf16>, [200, 1], device>, %y: !ds.buffer<tensor<16384xf32>, [1], device>, %z: !ds.buffer<tensor<4x0xf32>, [0, 1], device>, %s: !ds.buffer<tensor<f64>, [], device>) {
  // CHECK-NEXT: %[[W:.*]] = ds.alloc workspace : !ds.buffer<tensor<16xi8>, [1], device>
  // CHECK-NEXT: ds.call sum_of_squares({{.*}}) {{.*}}workspace(%[[W]]
  ds.call sum_of_squares(%x, %y, %z, %s) writes [3] params [] on compute : !ds.buffer<tensor<200x200xbf16>, [200, 1], device>, !ds.buffer<tensor<16384xf32>, [1], device>, !ds.buffer<tensor<4x0xf32>, [0, 1], device>, !ds.buffer<tensor<f64>, [], device>
  return
}
