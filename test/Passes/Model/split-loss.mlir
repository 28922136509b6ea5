// RUN: split-file %s %t
// RUN: ds-opt %t/shapes.mlir --split-input-file --ds-offer-loss=remarks --ds-split-loss=remarks --verify-diagnostics | FileCheck %t/shapes.mlir
// RUN: ds-opt %t/chosen.mlir --ds-offer-loss --ds-split-loss="rows=1024 remarks" --verify-diagnostics | FileCheck %t/chosen.mlir
// RUN: ds-opt %t/chosen.mlir --ds-offer-loss --ds-split-loss=rows=whole | FileCheck %s --check-prefix=WHOLE
// WHOLE-NOT: ds.split
// WHOLE: piece_rows
// RUN: not ds-opt %t/chosen.mlir --ds-split-loss=rows=0 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: expects shapes, whole, or a number of at least 1, but got '0'

//--- shapes.mlir

// What stays: one chunk is asked for.

module attributes {ds.training = #ds.training<loss_chunks = 1>} {
  // CHECK-LABEL: @one_chunk
  // CHECK: ds.matmul %{{.*}} -> tensor<8x100xf32>
  // CHECK-NEXT: ds.cross_entropy
  func.func @one_chunk(%x: tensor<8x4xf32>, %t: tensor<8xi64>, %w: tensor<4x100xf32>) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Logits that something else reads; logits that are no product; a nonlinear product; one whose sides are batched or
// transposed; arithmetic in between; columns that are mixed with rows.

module attributes {ds.training = #ds.training<loss_chunks = 2>} {
  // CHECK-LABEL: @stays
  // CHECK-NOT: ds.split
  // CHECK-NOT: over(
  // CHECK: return
  func.func @stays(%x: tensor<8x4xf32>, %t: tensor<8xi64>, %w: tensor<4x100xf32>, %given: tensor<8x100xf32>,
                   %xt: tensor<4x8xf32>, %xb: tensor<2x4x4xf32>, %wb: tensor<2x4x100xf32>, %flat: tensor<1x800xf32>,
                   %t1: tensor<1xi64>)
      -> (tensor<f32>, tensor<8x100xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
    %y = ds.matmul %x, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{stays whole: its logits are no product that nothing else reads}}
    %l0, %s0, %c0 = ds.cross_entropy %y, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    // expected-remark @+1 {{stays whole}}
    %l1, %s1, %c1 = ds.cross_entropy %given, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    %r = ds.matmul %x, %w epilogue(relu) : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{stays whole}}
    %l2, %s2, %c2 = ds.cross_entropy %r, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    %tr = ds.matmul %xt, %w transpose_lhs : tensor<4x8xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{stays whole}}
    %l3, %s3, %c3 = ds.cross_entropy %tr, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    %b = ds.matmul %xb, %wb : tensor<2x4x4xf32>, tensor<2x4x100xf32> -> tensor<2x4x100xf32>
    %bf = ds.reshape %b : tensor<2x4x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{stays whole}}
    %l4, %s4, %c4 = ds.cross_entropy %bf, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    %p = ds.matmul %x, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    %a = ds.tanh %p : tensor<8x100xf32>
    // expected-remark @+1 {{stays whole}}
    %l5, %s5, %c5 = ds.cross_entropy %a, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    %q = ds.matmul %x, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    %qf = ds.reshape %q : tensor<8x100xf32> -> tensor<1x800xf32>
    // expected-remark @+1 {{stays whole}}
    %l6, %s6, %c6 = ds.cross_entropy %qf, %t1 ignore_index -100 : (tensor<1x800xf32>, tensor<1xi64>) -> (tensor<f32>, tensor<1xf32>, tensor<f32>)
    %acc = ds.matmul %x, %w into(%given) : tensor<8x4xf32>, tensor<4x100xf32> into tensor<8x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{stays whole}}
    %l7, %s7, %c7 = ds.cross_entropy %acc, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %l0, %y, %l1, %l2, %l3, %l4, %l5, %l6, %l7 : tensor<f32>, tensor<8x100xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

// Left to the shapes: 8 rows of 100 are too little. 16384 rows of 64 numbers and a vocabulary of 8192: 16384 / 128 = 128
// rows would do, but fewer than 512 are never made at once, and 32 chunks of 512 save 15872 * 8192 * 4 bytes.

// CHECK-LABEL: module attributes {ds.decisions = #ds.decisions<loss_split = {chunks = 32, rows = 512}>}
module {
  // CHECK-LABEL: @small
  // CHECK-NOT: ds.split
  func.func @small(%x: tensor<8x4xf32>, %t: tensor<8xi64>, %w: tensor<4x100xf32>) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{stays whole: chunks of its 8 rows would save too little}}
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
  // CHECK-LABEL: @large
  // CHECK: ds.split {{.*}} dim 0 : tensor<16384x64xf32> -> tensor<512x64xf32>
  func.func @large(%x: tensor<16384x64xf32>, %t: tensor<16384xi64>, %w: tensor<64x8192xf32>) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<16384x64xf32>, tensor<64x8192xf32> -> tensor<16384x8192xf32>
    // expected-remark @+1 {{made in 32 chunks of 512 rows}}
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<16384x8192xf32>, tensor<16384xi64>) -> (tensor<f32>, tensor<16384xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Logits in 16 bits save half as much, and a weight of 16 bits costs the sum of its gradient in f32: 1024 - 512 rows of
// 65536 logits are 64 MiB, the sum of 65536 x 1024 numbers is 256 MiB.

module {
  // CHECK-LABEL: @sum_costs_more
  // CHECK-NOT: ds.split
  func.func @sum_costs_more(%x: tensor<1024x1024xbf16>, %t: tensor<1024xi64>, %w: tensor<65536x1024xbf16>) -> tensor<f32> {
    %y = ds.matmul %x, %w transpose_rhs : tensor<1024x1024xbf16>, tensor<65536x1024xbf16> -> tensor<1024x65536xbf16>
    // expected-remark @+1 {{would save too little}}
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<1024x65536xbf16>, tensor<1024xi64>) -> (tensor<f32>, tensor<1024xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Ten rows in four chunks: three, three, three and one. The count of the targets comes before all products. Each part
// caps its logits.

module attributes {ds.training = #ds.training<loss_chunks = 4>} {
  // CHECK-LABEL: @last_is_smaller
  // CHECK-SAME: %[[X:.*]]: tensor<10x4xf32>, %[[T:.*]]: tensor<10xi64>, %[[W:.*]]: tensor<100x4xf32>, %[[B:.*]]: tensor<100xf32>
  func.func @last_is_smaller(%x: tensor<10x4xf32>, %t: tensor<10xi64>, %w: tensor<100x4xf32>, %b: tensor<100xf32>) -> tensor<f32> {
    // CHECK: %[[IGNORED:.*]] = ds.constant dense<-7> : tensor<10xi64>
    // CHECK: %[[READ:.*]] = ds.compare ne %[[T]], %[[IGNORED]]
    // CHECK: %[[ONES:.*]] = ds.convert %[[READ]]
    // CHECK: %[[N:.*]] = ds.reduce sum %[[ONES]] dims [0] : tensor<10xf32> -> tensor<f32>
    // CHECK: %[[XS:.*]]:4 = ds.split %[[X]] dim 0 : tensor<10x4xf32> -> tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<1x4xf32>
    // CHECK: %[[TS:.*]]:4 = ds.split %[[T]] dim 0
    // CHECK: %[[Y0:.*]] = ds.matmul %[[XS]]#0, %[[W]] bias(%[[B]]) transpose_rhs {{.*}} -> tensor<3x100xf32>
    // CHECK: %[[L0:.*]], %{{.*}}, %{{.*}} = ds.cross_entropy %[[Y0]], %[[TS]]#0 over(%[[N]]) ignore_index -7 cap 3.000000e+00 :
    // CHECK: %[[Y1:.*]] = ds.matmul %[[XS]]#1
    // CHECK: %[[L1:.*]], %{{.*}}, %{{.*}} = ds.cross_entropy %[[Y1]], %[[TS]]#1 over(%[[N]])
    // CHECK: %[[S1:.*]] = ds.add %[[L0]], %[[L1]]
    // CHECK: %[[Y3:.*]] = ds.matmul %[[XS]]#3, %{{.*}} -> tensor<1x100xf32>
    // CHECK: %[[L3:.*]], %{{.*}}, %{{.*}} = ds.cross_entropy %[[Y3]], %[[TS]]#3 over(%[[N]])
    // CHECK: %[[S3:.*]] = ds.add %{{.*}}, %[[L3]]
    // CHECK: return %[[S3]]
    %y = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<10x4xf32>, tensor<100x4xf32>, tensor<100xf32> -> tensor<10x100xf32>
    // expected-remark @+1 {{made in 4 chunks of 3 rows}}
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -7 cap 3.0 : (tensor<10x100xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<10xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Logits of all but the last token, widened: the shift and the folding of rows are done to the product's input, once; the
// conversion in each chunk. A loss over a given number keeps it, and a count that is read is counted of all rows.

module attributes {ds.training = #ds.training<loss_chunks = 2>} {
  // CHECK-LABEL: @shifted
  // CHECK-SAME: %[[X:.*]]: tensor<2x5x4xbf16>, %[[T:.*]]: tensor<8xi64>, %[[W:.*]]: tensor<100x4xbf16>, %[[N:.*]]: tensor<f32>
  func.func @shifted(%x: tensor<2x5x4xbf16>, %t: tensor<8xi64>, %w: tensor<100x4xbf16>, %n: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    // CHECK: %[[SLICE:.*]] = ds.slice %[[X]] offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x5x4xbf16> -> tensor<2x4x4xbf16>
    // CHECK: %[[ROWS:.*]] = ds.reshape %[[SLICE]] : tensor<2x4x4xbf16> -> tensor<8x4xbf16>
    // CHECK: %[[XS:.*]]:2 = ds.split %[[ROWS]]
    // CHECK: %[[Y0:.*]] = ds.matmul %[[XS]]#0, %[[W]] transpose_rhs {{.*}} -> tensor<4x100xbf16>
    // CHECK: %[[F0:.*]] = ds.convert %[[Y0]] : tensor<4x100xbf16> -> tensor<4x100xf32>
    // CHECK: ds.cross_entropy %[[F0]], %{{.*}} over(%[[N]])
    // CHECK: %[[COUNT:.*]] = ds.reduce sum %{{.*}} : tensor<8xf32> -> tensor<f32>
    // CHECK: return %{{.*}}, %[[COUNT]]
    %y = ds.matmul %x, %w transpose_rhs : tensor<2x5x4xbf16>, tensor<100x4xbf16> -> tensor<2x5x100xbf16>
    %f = ds.convert %y : tensor<2x5x100xbf16> -> tensor<2x5x100xf32>
    %s = ds.slice %f offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x5x100xf32> -> tensor<2x4x100xf32>
    %r = ds.reshape %s : tensor<2x4x100xf32> -> tensor<8x100xf32>
    // expected-remark @+1 {{made in 2 chunks of 4 rows}}
    %loss, %lse, %count = ds.cross_entropy %r, %t over(%n) ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %loss, %count : tensor<f32>, tensor<f32>
  }
}

//--- chosen.mlir
// Rows that were chosen are those of the losses that offer them; others stay whole.

module {
  // CHECK-LABEL: @chosen
  // CHECK: ds.matmul {{.*}} -> tensor<1024x8192xf32>
  // CHECK: ds.matmul {{.*}} -> tensor<576x8192xf32>
  // CHECK: ds.matmul {{.*}} -> tensor<1100x8192xf32>
  func.func @chosen(%x: tensor<1600x4xf32>, %t: tensor<1600xi64>, %z: tensor<1100x4xf32>, %u: tensor<1100xi64>, %w: tensor<4x8192xf32>) -> (tensor<f32>, tensor<f32>) {
    %y = ds.matmul %x, %w : tensor<1600x4xf32>, tensor<4x8192xf32> -> tensor<1600x8192xf32>
    // expected-remark @+1 {{made in 2 chunks of 1024 rows}}
    %l0, %s0, %c0 = ds.cross_entropy %y, %t ignore_index -100 : (tensor<1600x8192xf32>, tensor<1600xi64>) -> (tensor<f32>, tensor<1600xf32>, tensor<f32>)
    %v = ds.matmul %z, %w : tensor<1100x4xf32>, tensor<4x8192xf32> -> tensor<1100x8192xf32>
    %l1, %s1, %c1 = ds.cross_entropy %v, %u ignore_index -100 : (tensor<1100x8192xf32>, tensor<1100xi64>) -> (tensor<f32>, tensor<1100xf32>, tensor<f32>)
    return %l0, %l1 : tensor<f32>, tensor<f32>
  }
}
