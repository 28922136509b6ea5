// RUN: ds-opt %s --ds-split-columns --split-input-file | FileCheck %s

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// 768 columns of 2 bytes are 48 strips of 32 bytes; 16 parts of 512 rows make 768 blocks of them.
// CHECK-LABEL: @cuts_a_bias
func.func @cuts_a_bias(%x: tensor<8192x768xbf16>) -> tensor<768xbf16> {
  // CHECK: %[[CUT:.*]] = ds.reshape %arg0 : tensor<8192x768xbf16> -> tensor<512x16x768xbf16>
  // CHECK: %[[PARTS:.*]] = ds.fused(%[[CUT]]) : (tensor<512x16x768xbf16>) -> tensor<16x768xf32> {
  // CHECK: %[[WIDE:.*]] = ds.convert %{{.*}} : tensor<512x16x768xbf16> -> tensor<512x16x768xf32>
  // CHECK: ds.reduce sum %[[WIDE]] dims [0] : tensor<512x16x768xf32> -> tensor<16x768xf32>
  // CHECK: ds.fused(%[[PARTS]]) : (tensor<16x768xf32>) -> tensor<768xbf16> {
  // CHECK: %[[SUM:.*]] = ds.reduce sum %{{.*}} dims [0] : tensor<16x768xf32> -> tensor<768xf32>
  // CHECK: ds.convert %[[SUM]] : tensor<768xf32> -> tensor<768xbf16>
  %r = ds.fused(%x) : (tensor<8192x768xbf16>) -> tensor<768xbf16> {
  ^bb0(%a: tensor<8192x768xbf16>):
    %s = ds.reduce sum %a dims [0] : tensor<8192x768xbf16> -> tensor<768xbf16>
    ds.yield %s : tensor<768xbf16>
  }
  return %r : tensor<768xbf16>
}

// A norm's gain and bias: positions are cut in 64 * 16, and so is what is one number for each of them; what is one for each
// column, or for each sample, stays. What is done to totals is done to those of the parts.
// CHECK-LABEL: @cuts_what_rows_have
func.func @cuts_what_rows_have(%x: tensor<8x1024x512xf32>, %row: tensor<8x1024xf32>, %column: tensor<512xf32>, %sample: tensor<8x1xf32>, %old: tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  // CHECK-DAG: %[[X:.*]] = ds.reshape %arg0 : tensor<8x1024x512xf32> -> tensor<8x128x8x512xf32>
  // CHECK-DAG: %[[ROW:.*]] = ds.reshape %arg1 : tensor<8x1024xf32> -> tensor<8x128x8xf32>
  // CHECK-DAG: %[[SAMPLE:.*]] = ds.reshape %arg3 : tensor<8x1xf32> -> tensor<8x1x1xf32>
  // CHECK: %[[PARTS:.*]]:2 = ds.fused(%[[X]], %[[ROW]], %arg2, %[[SAMPLE]])
  // CHECK: ds.broadcast %{{.*}} dims [0, 1, 2] : tensor<8x128x8xf32> -> tensor<8x128x8x512xf32>
  // CHECK: ds.broadcast %{{.*}} dims [3] : tensor<512xf32> -> tensor<8x128x8x512xf32>
  // CHECK: ds.broadcast %{{.*}} dims [0, 1, 2] : tensor<8x1x1xf32> -> tensor<8x128x8x512xf32>
  // CHECK: ds.constant dense<2.000000e+00> : tensor<8x128x8x512xf32>
  // CHECK-COUNT-2: ds.reduce sum %{{.*}} dims [0, 1] : tensor<8x128x8x512xf32> -> tensor<8x512xf32>
  // CHECK: ds.fused(%[[PARTS]]#0, %[[PARTS]]#1, %arg4)
  // CHECK: %[[BIAS:.*]] = ds.reduce sum %{{.*}} dims [0] : tensor<8x512xf32> -> tensor<512xf32>
  // CHECK: %[[GAIN:.*]] = ds.reduce sum %{{.*}} dims [0] : tensor<8x512xf32> -> tensor<512xf32>
  // CHECK: %[[SUM:.*]] = ds.add %[[GAIN]], %{{.*}} : tensor<512xf32>
  // CHECK: ds.yield %[[BIAS]], %[[SUM]]
  %r:2 = ds.fused(%x, %row, %column, %sample, %old) : (tensor<8x1024x512xf32>, tensor<8x1024xf32>, tensor<512xf32>, tensor<8x1xf32>, tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  ^bb0(%a: tensor<8x1024x512xf32>, %b: tensor<8x1024xf32>, %c: tensor<512xf32>, %d: tensor<8x1xf32>, %e: tensor<512xf32>):
    %b3 = ds.broadcast %b dims [0, 1] : tensor<8x1024xf32> -> tensor<8x1024x512xf32>
    %c3 = ds.broadcast %c dims [2] : tensor<512xf32> -> tensor<8x1024x512xf32>
    %d3 = ds.broadcast %d dims [0, 1] : tensor<8x1xf32> -> tensor<8x1024x512xf32>
    %two = ds.constant dense<2.0> : tensor<8x1024x512xf32>
    %y = ds.mul %a, %b3 : tensor<8x1024x512xf32>
    %z = ds.mul %y, %c3 : tensor<8x1024x512xf32>
    %w = ds.mul %z, %d3 : tensor<8x1024x512xf32>
    %v = ds.mul %w, %two : tensor<8x1024x512xf32>
    %bias = ds.reduce sum %a dims [0, 1] : tensor<8x1024x512xf32> -> tensor<512xf32>
    %gain = ds.reduce sum %v dims [0, 1] : tensor<8x1024x512xf32> -> tensor<512xf32>
    %sum = ds.add %gain, %e : tensor<512xf32>
    ds.yield %bias, %sum : tensor<512xf32>, tensor<512xf32>
  }
  return %r#0, %r#1 : tensor<512xf32>, tensor<512xf32>
}

// 4096 columns of 4 bytes are 512 strips already.
// CHECK-LABEL: @keeps_wide_rows
func.func @keeps_wide_rows(%x: tensor<8192x4096xf32>) -> tensor<4096xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<8192x4096xf32>) -> tensor<4096xf32>
  %r = ds.fused(%x) : (tensor<8192x4096xf32>) -> tensor<4096xf32> {
  ^bb0(%a: tensor<8192x4096xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<8192x4096xf32> -> tensor<4096xf32>
    ds.yield %s : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}

// Two parts would have 16 rows each.
// CHECK-LABEL: @keeps_few_rows
func.func @keeps_few_rows(%x: tensor<32x64xf32>) -> tensor<64xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<32x64xf32>) -> tensor<64xf32>
  %r = ds.fused(%x) : (tensor<32x64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<32x64xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<32x64xf32> -> tensor<64xf32>
    ds.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// An odd number of rows has no parts.
// CHECK-LABEL: @keeps_odd_rows
func.func @keeps_odd_rows(%x: tensor<8191x64xf32>) -> tensor<64xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<8191x64xf32>) -> tensor<64xf32>
  %r = ds.fused(%x) : (tensor<8191x64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<8191x64xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<8191x64xf32> -> tensor<64xf32>
    ds.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// CHECK-LABEL: @keeps_sums_of_rows
func.func @keeps_sums_of_rows(%x: tensor<8192x64xf32>) -> tensor<8192xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<8192x64xf32>) -> tensor<8192xf32>
  %r = ds.fused(%x) : (tensor<8192x64xf32>) -> tensor<8192xf32> {
  ^bb0(%a: tensor<8192x64xf32>):
    %s = ds.reduce sum %a dims [1] : tensor<8192x64xf32> -> tensor<8192xf32>
    ds.yield %s : tensor<8192xf32>
  }
  return %r : tensor<8192xf32>
}

// Totals that rows read again need all parts first.
// CHECK-LABEL: @keeps_totals_that_go_back
func.func @keeps_totals_that_go_back(%x: tensor<8192x64xf32>) -> tensor<64xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<8192x64xf32>) -> tensor<64xf32>
  %r = ds.fused(%x) : (tensor<8192x64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<8192x64xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<8192x64xf32> -> tensor<64xf32>
    %t = ds.broadcast %s dims [1] : tensor<64xf32> -> tensor<8192x64xf32>
    %d = ds.sub %a, %t : tensor<8192x64xf32>
    %q = ds.reduce max %d dims [0] : tensor<8192x64xf32> -> tensor<64xf32>
    ds.yield %q : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
}

// -----

// A CPU's threads are few.
// CHECK-LABEL: @keeps_columns_of_a_cpu
func.func @keeps_columns_of_a_cpu(%x: tensor<8192x64xf32>) -> tensor<64xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<8192x64xf32>) -> tensor<64xf32>
  %r = ds.fused(%x) : (tensor<8192x64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<8192x64xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<8192x64xf32> -> tensor<64xf32>
    ds.yield %s : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
