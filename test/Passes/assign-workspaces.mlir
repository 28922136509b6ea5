// RUN: ds-opt %s --ds-assign-workspaces | FileCheck %s

// Only products have a library that asks for scratch memory.
// CHECK-LABEL: @keeps_calls_without_scratch_memory
func.func @keeps_calls_without_scratch_memory(%a: !ds.buffer<tensor<4xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>) {
  // CHECK-NOT: ds.alloc
  // CHECK: ds.call "copy"(%arg0, %arg1) writes [1] params [] on compute
  ds.call "copy"(%a, %b) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// What it asks for depends on the processor: a positive number of bytes, right before the call, or nothing.
// CHECK-LABEL: @gives_a_product_what_its_library_asks_for
func.func @gives_a_product_what_its_library_asks_for(%a: !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, %b: !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, %c: !ds.buffer<tensor<64x32xbf16>, [32, 1], device>) {
  // CHECK-NEXT: {{(%0 = ds.alloc "workspace" : !ds.buffer<tensor<[1-9][0-9]*xi8>, \[1\], device>)|(ds.call "matmul")}}
  // CHECK: return
  ds.call "matmul"(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<64x48xbf16>, [48, 1], device>, !ds.buffer<tensor<32x48xbf16>, [48, 1], device>, !ds.buffer<tensor<64x32xbf16>, [32, 1], device>
  return
}
