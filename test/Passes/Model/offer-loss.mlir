// RUN: ds-opt %s --split-input-file --ds-offer-loss=remarks --verify-diagnostics | FileCheck %s

// Losses stay whole, and each says in what pieces it could be made: powers of two of at least 512 rows that save 16 MiB.
// 1600 x 8192 logits take 50 MiB, and 1024 rows 32; of 600 rows 512 save 2.8 MiB, and nothing is offered.

module {
  // CHECK-LABEL: @offers
  // CHECK-NOT: ds.split
  // CHECK: ds.cross_entropy {{.*}} {piece_rows = array<i64: 1024, 512>} :
  // CHECK: ds.cross_entropy {{.*}} ignore_index -100 :
  // CHECK: return
  func.func @offers(%x: tensor<1600x4xf32>, %t: tensor<1600xi64>, %z: tensor<600x4xf32>, %u: tensor<600xi64>, %w: tensor<4x8192xf32>) -> (tensor<f32>, tensor<f32>) {
    %y = ds.matmul %x, %w : tensor<1600x4xf32>, tensor<4x8192xf32> -> tensor<1600x8192xf32>
    %l0, %s0, %c0 = ds.cross_entropy %y, %t ignore_index -100 : (tensor<1600x8192xf32>, tensor<1600xi64>) -> (tensor<f32>, tensor<1600xf32>, tensor<f32>)
    %v = ds.matmul %z, %w : tensor<600x4xf32>, tensor<4x8192xf32> -> tensor<600x8192xf32>
    // expected-remark @+1 {{stays whole: chunks of its 600 rows would save too little}}
    %l1, %s1, %c1 = ds.cross_entropy %v, %u ignore_index -100 : (tensor<600x8192xf32>, tensor<600xi64>) -> (tensor<f32>, tensor<600xf32>, tensor<f32>)
    return %l0, %l1 : tensor<f32>, tensor<f32>
  }
}

// -----

// A number of chunks that is asked for is what is offered.

module attributes {ds.training = #ds.training<loss_chunks = 4>} {
  // CHECK-LABEL: @offers_what_is_asked_for
  // CHECK: ds.cross_entropy {{.*}} {piece_rows = array<i64: 3>} :
  func.func @offers_what_is_asked_for(%x: tensor<10x4xf32>, %t: tensor<10xi64>, %w: tensor<4x100xf32>) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<10x4xf32>, tensor<4x100xf32> -> tensor<10x100xf32>
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<10x100xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<10xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// With one chunk nothing is offered.

module attributes {ds.training = #ds.training<loss_chunks = 1>} {
  // CHECK-LABEL: @offers_nothing
  // CHECK-NOT: piece_rows
  // CHECK: return
  func.func @offers_nothing(%x: tensor<1600x4xf32>, %t: tensor<1600xi64>, %w: tensor<4x8192xf32>) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<1600x4xf32>, tensor<4x8192xf32> -> tensor<1600x8192xf32>
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<1600x8192xf32>, tensor<1600xi64>) -> (tensor<f32>, tensor<1600xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}
