// Each collective along one axis and along sets of axes, on 8 ranks with three coordinates: rank = 4 node + 2 local + tp.
// REQUIRES: torch
// RUN: ds-opt %s --split-input-file --mlir-print-op-generic | %python %oracle/ranks/run.py | FileCheck %s

// Groups along tp are ranks 0 1, 2 3, 4 5, 6 7; along dp.local 0 2, 1 3, 4 6, 5 7; along dp.node 0 4, 1 5, 2 6, 3 7.
// CHECK:      rank 0 @gather: [0, 1], [0, 2], [0, 4], [0, 2, 4, 6], [0, 1, 4, 5]
// CHECK-NEXT: rank 1 @gather: [0, 1], [1, 3], [1, 5], [1, 3, 5, 7], [0, 1, 4, 5]
// CHECK-NEXT: rank 2 @gather: [2, 3], [0, 2], [2, 6], [0, 2, 4, 6], [2, 3, 6, 7]
// CHECK-NEXT: rank 3 @gather: [2, 3], [1, 3], [3, 7], [1, 3, 5, 7], [2, 3, 6, 7]
// CHECK-NEXT: rank 4 @gather: [4, 5], [4, 6], [0, 4], [0, 2, 4, 6], [0, 1, 4, 5]
// CHECK-NEXT: rank 5 @gather: [4, 5], [5, 7], [1, 5], [1, 3, 5, 7], [0, 1, 4, 5]
// CHECK-NEXT: rank 6 @gather: [6, 7], [4, 6], [2, 6], [0, 2, 4, 6], [2, 3, 6, 7]
// CHECK-NEXT: rank 7 @gather: [6, 7], [5, 7], [3, 7], [1, 3, 5, 7], [2, 3, 6, 7]
// Of 8 ranks each sends (n - 1) * 8 bytes.
// CHECK-NEXT: sent by ds.all_gather along dp.local: 64 bytes
// CHECK-NEXT: sent by ds.all_gather along dp.node: 64 bytes
// CHECK-NEXT: sent by ds.all_gather along (dp.node, dp.local): 192 bytes
// CHECK-NEXT: sent by ds.all_gather along (dp.node, tp): 192 bytes
// CHECK-NEXT: sent by ds.all_gather along tp: 64 bytes
module {
  ds.mesh @mesh axes [dp.node = 2, dp.local = 2, tp = 2] samples dp
  func.func @gather() -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<4xi64>, tensor<4xi64>) {
    %i = ds.axis_index (dp, tp) : tensor<i64>
    %x = ds.reshape %i : tensor<i64> -> tensor<1xi64>
    %0 = ds.all_gather %x along tp : tensor<1xi64> -> tensor<2xi64>
    %1 = ds.all_gather %x along dp.local : tensor<1xi64> -> tensor<2xi64>
    %2 = ds.all_gather %x along dp.node : tensor<1xi64> -> tensor<2xi64>
    %3 = ds.all_gather %x along dp : tensor<1xi64> -> tensor<4xi64>
    %4 = ds.all_gather %x along (dp.node, tp) : tensor<1xi64> -> tensor<4xi64>
    return %0, %1, %2, %3, %4 : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<4xi64>, tensor<4xi64>
  }
}

// -----

// Ranks 0 to 3 have dp 0 0 1 1 and tp 0 1 0 1, and x = [r, 10 + r, 20 + r, 30 + r].
// CHECK-LABEL: module 1
// Along tp: 0 + 1 and 2 + 3. Along both: 0 + 1 + 2 + 3 in each element, part r.
// CHECK:      rank 0 @reduce: [1, 21], [6], [3, 13, 23, 33], [0, 10, 20, 30]
// CHECK-NEXT: rank 1 @reduce: [41, 61], [46], [3, 13, 23, 33], [1, 11, 21, 31]
// CHECK-NEXT: rank 2 @reduce: [5, 25], [86], [3, 13, 23, 33], [0, 10, 20, 30]
// CHECK-NEXT: rank 3 @reduce: [45, 65], [126], [3, 13, 23, 33], [1, 11, 21, 31]
module {
  ds.mesh @mesh axes [dp = 2, tp = 2] samples dp
  func.func @reduce() -> (tensor<2xi64>, tensor<1xi64>, tensor<4xi64>, tensor<4xi64>) {
    %i = ds.axis_index (dp, tp) : tensor<i64>
    %r = ds.broadcast %i dims [] : tensor<i64> -> tensor<4xi64>
    %tens = ds.iota dim 0 start 0 step 10 : tensor<4xi64>
    %x = ds.add %r, %tens : tensor<4xi64>
    %0 = ds.reduce_scatter sum %x along tp : tensor<4xi64> -> tensor<2xi64>
    %1 = ds.reduce_scatter sum %x along (dp, tp) : tensor<4xi64> -> tensor<1xi64>
    %2 = ds.all_reduce max %x along (tp, dp) : tensor<4xi64>
    %3 = ds.all_reduce min %x along dp : tensor<4xi64>
    return %0, %1, %2, %3 : tensor<2xi64>, tensor<1xi64>, tensor<4xi64>, tensor<4xi64>
  }
}

// -----

// CHECK-LABEL: module 2
// Part r of each goes to rank r of the group: of ranks 0 and 2 the first halves to 0, the second to 2.
// CHECK:      rank 0 @exchange: [0, 10, 2, 12], [0, 1, 2, 3], [1, 11, 21, 31], [0, 1]
// CHECK-NEXT: rank 1 @exchange: [1, 11, 3, 13], [10, 11, 12, 13], [1, 11, 21, 31], [0, 1]
// CHECK-NEXT: rank 2 @exchange: [20, 30, 22, 32], [20, 21, 22, 23], [3, 13, 23, 33], [2, 3]
// CHECK-NEXT: rank 3 @exchange: [21, 31, 23, 33], [30, 31, 32, 33], [3, 13, 23, 33], [2, 3]
// Of a state that is cut along dp, ranks of one dp have the same part, and together all have the whole.
// CHECK-NEXT: whole cut: [0, 1, 2, 3]
module {
  ds.mesh @mesh axes [dp = 2, tp = 2] samples dp
  ds.state @cut role(buffer) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xi64>
  func.func @exchange(%cut: tensor<2xi64> {ds.state = @cut}) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<2xi64> {ds.state = @cut}) {
    %i = ds.axis_index (dp, tp) : tensor<i64>
    %r = ds.broadcast %i dims [] : tensor<i64> -> tensor<4xi64>
    %tens = ds.iota dim 0 start 0 step 10 : tensor<4xi64>
    %x = ds.add %r, %tens : tensor<4xi64>
    %0 = ds.all_to_all %x along dp : tensor<4xi64>
    %1 = ds.all_to_all %x along (dp, tp) : tensor<4xi64>
    %2 = ds.collective_broadcast %x root 1 along tp : tensor<4xi64>
    return %0, %1, %2, %cut : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<2xi64>
  }
}

// -----

// CHECK-LABEL: module 3
// Sums of 16-bit numbers are rounded once: 256 + 1 + 1 is 258 in f32, and in bf16 as well; 256 + 1 in bf16 would be 256.
// CHECK: rank 0 @round: [258]
module {
  ds.mesh @mesh axes [dp = 3] samples dp
  func.func @round() -> tensor<bf16> {
    %i = ds.axis_index dp : tensor<i64>
    %zero = ds.constant dense<0> : tensor<i64>
    %first = ds.compare eq %i, %zero : tensor<i64>
    %large = ds.constant dense<256.0> : tensor<bf16>
    %one = ds.constant dense<1.0> : tensor<bf16>
    %x = ds.select %first, %large, %one : tensor<bf16>
    %0 = ds.all_reduce sum %x along dp : tensor<bf16>
    return %0 : tensor<bf16>
  }
}
