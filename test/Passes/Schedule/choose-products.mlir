// RUN: split-file %s %t
// RUN: ds-opt %t/products.mlir --ds-set-machine=threads=2 --ds-choose-products=tuning=%t/tuning.json | FileCheck %t/products.mlir
// RUN: not ds-opt %t/products.mlir --ds-set-machine=threads=3 --ds-choose-products=tuning=%t/tuning.json 2>&1 | FileCheck %t/products.mlir --check-prefix=THREADS
// RUN: not ds-opt %t/products.mlir --ds-set-machine=threads=2 --ds-choose-products=tuning=%t/wrong.json 2>&1 | FileCheck %t/products.mlir --check-prefix=WRONG
// RUN: not ds-opt %t/products.mlir --ds-set-machine=threads=2 --ds-choose-products=tuning=%t/none.json 2>&1 | FileCheck %t/products.mlir --check-prefix=NONE
// RUN: not ds-opt %t/products.mlir --ds-set-machine=threads=2 --ds-choose-products=tuning=%t/products.mlir 2>&1 | FileCheck %t/products.mlir --check-prefix=TEXT

//--- tuning.json
{"product_tuning": 1, "processor": "a processor", "date": "2026-01-02", "threads": 2, "products": {
  "f32 to f32: 1 x 4 x 6 x 8, by rows, rows": {"kind": 0, "rows": 0, "columns": 0, "depth": 64, "seconds": 0.25, "plain_seconds": 0.5},
  "f32 to f32: 1 x 4 x 6 x 8, by rows, columns": {"kind": 0, "rows": 0, "columns": 0, "depth": 0, "seconds": 0.125, "plain_seconds": 0.125}
}}
//--- wrong.json
{"product_tuning": 1, "threads": 2, "products": {
  "f32 to f32: 1 x 4 x 6 x 8, by rows, rows": {"kind": 2, "rows": 0, "columns": 0, "depth": 0, "seconds": 0.25, "plain_seconds": 0.5}
}}
//--- products.mlir
// THREADS: expects a tuning for 3 threads, but '{{.*}}tuning.json' is for 2
// WRONG: cannot be made as the tuning says: a product of f32 is neither native nor widened
// NONE: expects a tuning of products: {{.*}}none.json: cannot be opened
// TEXT: expects a tuning of products: {{.*}}products.mlir: is no tuning of products

// What the file does not know, and what the host's cores do, stays as it is.
// CHECK-LABEL: @keeps_other_products
func.func @keeps_other_products(%a: !ds.buffer<tensor<5x8xf32>, [8, 1], device>, %b: !ds.buffer<tensor<8x6xf32>, [6, 1], device>, %c: !ds.buffer<tensor<5x6xf32>, [6, 1], device>) {
  // CHECK: ds.call matmul({{.*}}) writes [2] params [0, 0, 0, 0] on compute :
  ds.call matmul(%a, %b, %c) writes [2] params [0, 0, 0, 0] on compute : !ds.buffer<tensor<5x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x6xf32>, [6, 1], device>, !ds.buffer<tensor<5x6xf32>, [6, 1], device>
  return
}

// The usual form needs no params; its time is told.
// CHECK-LABEL: @tells_the_time_of_a_product_that_is_best_as_it_is
func.func @tells_the_time_of_a_product_that_is_best_as_it_is(%a: !ds.buffer<tensor<4x8xf32>, [8, 1], device>, %b: !ds.buffer<tensor<6x8xf32>, [8, 1], device>, %c: !ds.buffer<tensor<4x6xf32>, [6, 1], device>) {
  // CHECK: ds.call matmul({{.*}}) writes [2] params [0, 1, 0, 0] on compute measured 1.250000e-01
  ds.call matmul(%a, %b, %c) writes [2] params [0, 1, 0, 0] on compute : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<6x8xf32>, [8, 1], device>, !ds.buffer<tensor<4x6xf32>, [6, 1], device>
  return
}

// The second result is a piece of something wider, as that of a product made again may be: both need the same bits.
// CHECK-LABEL: @gives_products_made_again_the_same_form
func.func @gives_products_made_again_the_same_form(%a: !ds.buffer<tensor<4x8xf32>, [8, 1], device>, %b: !ds.buffer<tensor<8x6xf32>, [6, 1], device>, %c: !ds.buffer<tensor<4x6xf32>, [6, 1], device>, %d: !ds.buffer<tensor<4x6xf32>, [12, 1], device>) {
  // CHECK: ds.call matmul({{.*}}) writes [2] params [0, 0, 0, 0, 0, 0, 0, 64] on compute measured 2.500000e-01
  // CHECK: ds.call matmul({{.*}}) writes [2] params [0, 0, 0, 0, 0, 0, 0, 64] on compute measured 2.500000e-01
  ds.call matmul(%a, %b, %c) writes [2] params [0, 0, 0, 0] on compute : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x6xf32>, [6, 1], device>, !ds.buffer<tensor<4x6xf32>, [6, 1], device>
  ds.call matmul(%a, %b, %d) writes [2] params [0, 0, 0, 0] on compute : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<8x6xf32>, [6, 1], device>, !ds.buffer<tensor<4x6xf32>, [12, 1], device>
  return
}
