// RUN: ds-opt %s --ds-join-bias-grad --split-input-file | FileCheck %s

!wide = !ds.buffer<tensor<4096x768xbf16>, [768, 1], device>
!x = !ds.buffer<tensor<4096x512xbf16>, [512, 1], device>
!dw = !ds.buffer<tensor<512x768xbf16>, [768, 1], device>
!cut = !ds.buffer<tensor<256x16x768xbf16>, [12288, 768, 1], device>
!parts = !ds.buffer<tensor<16x768xf32>, [768, 1], device>
!db = !ds.buffer<tensor<768xbf16>, [1], device>
!rows = !ds.buffer<tensor<4x1024x768xbf16>, [786432, 768, 1], device>

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
  ds.kernel @parts inputs 1 buffers [!cut, !parts] {
  ^bb0(%a: tensor<256x16x768xbf16>):
    %w = ds.convert %a : tensor<256x16x768xbf16> -> tensor<256x16x768xf32>
    %s = ds.reduce sum %w dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
    ds.yield %s : tensor<16x768xf32>
  }
  ds.kernel @sum inputs 1 buffers [!parts, !db] {
  ^bb0(%a: tensor<16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<16x768xf32> -> tensor<768xf32>
    %r = ds.convert %s : tensor<768xf32> -> tensor<768xbf16>
    ds.yield %r : tensor<768xbf16>
  }
  ds.kernel @whole inputs 1 buffers [!wide, !db] {
  ^bb0(%a: tensor<4096x768xbf16>):
    %s = ds.reduce sum %a dims [0] : tensor<4096x768xbf16> -> tensor<768xbf16>
    ds.yield %s : tensor<768xbf16>
  }
  ds.kernel @greatest inputs 1 buffers [!wide, !db] {
  ^bb0(%a: tensor<4096x768xbf16>):
    %s = ds.reduce max %a dims [0] : tensor<4096x768xbf16> -> tensor<768xbf16>
    ds.yield %s : tensor<768xbf16>
  }
  ds.kernel @onto inputs 2 buffers [!wide, !db, !db] {
  ^bb0(%a: tensor<4096x768xbf16>, %b: tensor<768xbf16>):
    %s = ds.reduce sum %a dims [0] : tensor<4096x768xbf16> -> tensor<768xbf16>
    %r = ds.add %s, %b : tensor<768xbf16>
    ds.yield %r : tensor<768xbf16>
  }

  // x^T dy, and what dy's columns add up to: the kernels come first, with their memory.
  // CHECK-LABEL: func.func @joins_partial_sums
  func.func @joins_partial_sums(%x: !x, %dy: !wide, %dw: !dw, %db: !db) {
    // CHECK: %[[CUT:.*]] = ds.view %arg1
    // CHECK: %[[PARTS:.*]] = ds.alloc activations
    // CHECK: ds.launch @parts ins(%[[CUT]]) outs(%[[PARTS]])
    // CHECK: ds.launch @sum ins(%[[PARTS]]) outs(%arg3)
    // CHECK: ds.call matmul(%arg0, %arg1, %arg2, %arg3) writes [2, 3] params [1, 0, 0, 0, 2] on compute
    // CHECK-NEXT: return
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    %cut = ds.view %dy offset 0 : !wide -> !cut
    %parts = ds.alloc activations : !parts
    ds.launch @parts ins(%cut) outs(%parts) on compute : (!cut) -> !parts
    ds.launch @sum ins(%parts) outs(%db) on compute : (!parts) -> !db
    return
  }

  // dy^T x: the first factor.
  // CHECK-LABEL: func.func @joins_one_launch
  func.func @joins_one_launch(%x: !x, %dy: !wide, %dw: !ds.buffer<tensor<768x512xbf16>, [512, 1], device>, %db: !db) {
    // CHECK-NEXT: ds.launch @whole ins(%arg1) outs(%arg3)
    // CHECK-NEXT: ds.call matmul(%arg1, %arg0, %arg2, %arg3) writes [2, 3] params [1, 0, 0, 0, 1] on compute
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    ds.call matmul(%dy, %x, %dw) writes [2] params [1, 0, 0, 0] on compute : !wide, !x, !ds.buffer<tensor<768x512xbf16>, [512, 1], device>
    return
  }

  // What stands between only reads what the launch reads too.
  // CHECK-LABEL: func.func @passes_readers
  func.func @passes_readers(%x: !x, %dy: !wide, %dw: !dw, %db: !db, %w: !dw, %dx: !x) {
    // CHECK-NEXT: ds.launch @whole
    // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2, %arg3)
    // CHECK-NEXT: ds.call matmul(%arg1, %arg4, %arg5) writes [2] params [0, 1, 0, 0]
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    ds.call matmul(%dy, %w, %dx) writes [2] params [0, 1, 0, 0] on compute : !wide, !dw, !x
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    return
  }

  // The factor is written over in between: neither may pass.
  // CHECK-LABEL: func.func @keeps_what_is_overwritten
  func.func @keeps_what_is_overwritten(%x: !x, %dy: !wide, %dw: !dw, %db: !db) {
    // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2) writes [2] params [1, 0, 0, 0]
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    ds.call fill(%dy) writes [0] params [0.000000e+00] on compute : !wide
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    return
  }

  // One buffer, and another value by then: the launch that has read this one is found behind the product.
  // CHECK-LABEL: func.func @keeps_values_apart
  func.func @keeps_values_apart(%x: !x, %dy: !wide, %dw: !dw, %old: !db, %db: !db) {
    // CHECK-NEXT: ds.launch @whole ins(%arg1) outs(%arg3)
    // CHECK-NEXT: ds.call fill(%arg1)
    // CHECK-NEXT: ds.launch @whole ins(%arg1) outs(%arg4)
    // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2, %arg4) writes [2, 3] params [1, 0, 0, 0, 2]
    ds.launch @whole ins(%dy) outs(%old) on compute : (!wide) -> !db
    ds.call fill(%dy) writes [0] params [0.000000e+00] on compute : !wide
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    return
  }

  // The product comes too late for who has read the sums.
  // CHECK-LABEL: func.func @keeps_what_is_read_before
  func.func @keeps_what_is_read_before(%x: !x, %dy: !wide, %dw: !dw, %db: !db, %copy: !db) {
    // CHECK: ds.call matmul(%arg0, %arg1, %arg2) writes [2] params [1, 0, 0, 0]
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    ds.call copy(%db, %copy) writes [1] params [] on compute : !db, !db
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    return
  }

  // Partial sums that something else reads, another reduction, and sums that are added to older ones.
  // CHECK-LABEL: func.func @keeps_other_kernels
  func.func @keeps_other_kernels(%x: !x, %dy: !wide, %dw: !dw, %db: !db, %copy: !parts) {
    // CHECK-COUNT-3: ds.call matmul(%arg0, %arg1, %arg2) writes [2] params [1, 0, 0, 0]
    %cut = ds.view %dy offset 0 : !wide -> !cut
    %parts = ds.alloc activations : !parts
    ds.launch @parts ins(%cut) outs(%parts) on compute : (!cut) -> !parts
    ds.launch @sum ins(%parts) outs(%db) on compute : (!parts) -> !db
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    ds.call copy(%parts, %copy) writes [1] params [] on compute : !parts, !parts
    ds.call fill(%dy) writes [0] params [0.000000e+00] on compute : !wide
    ds.launch @greatest ins(%dy) outs(%db) on compute : (!wide) -> !db
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    ds.call fill(%dy) writes [0] params [0.000000e+00] on compute : !wide
    ds.launch @onto ins(%dy, %db) outs(%db) on compute : (!wide, !db) -> !db
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    return
  }

  // What comes out of GELU's gradient is added up behind it: it names the sums, and so does the product of the weight's gradient.
  // CHECK-LABEL: func.func @joins_results
  func.func @joins_results(%d: !ds.buffer<tensor<4x1024x512xbf16>, [524288, 512, 1], device>, %w: !dw, %dy: !rows, %h: !rows, %x: !x, %dw: !dw) {
    // CHECK-NEXT: %[[DB:.*]] = ds.alloc activations
    // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2, %arg3, %[[DB]]) writes [2, 4] params [0, 0, 0, 3, 3] on compute
    // CHECK: %[[PARTS:.*]] = ds.alloc activations
    // CHECK: ds.launch @parts ins(%{{.*}}) outs(%[[PARTS]])
    // CHECK: ds.launch @sum ins(%[[PARTS]]) outs(%[[DB]])
    // CHECK: ds.call matmul(%arg4, %{{.*}}, %arg5, %[[DB]]) writes [2, 3] params [1, 0, 0, 0, 2] on compute
    ds.call matmul(%d, %w, %dy, %h) writes [2] params [0, 0, 0, 3] on compute : !ds.buffer<tensor<4x1024x512xbf16>, [524288, 512, 1], device>, !dw, !rows, !rows
    %flat = ds.view %dy offset 0 : !rows -> !wide
    ds.call matmul(%x, %flat, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    %cut = ds.view %dy offset 0 : !rows -> !cut
    %parts = ds.alloc activations : !parts
    %db = ds.alloc activations : !db
    ds.launch @parts ins(%cut) outs(%parts) on compute : (!cut) -> !parts
    ds.launch @sum ins(%parts) outs(%db) on compute : (!parts) -> !db
    return
  }

  // What it gives is changed before it is added up, or what holds the sums is something else until then; GELU itself gives no
  // gradient.
  // CHECK-LABEL: func.func @keeps_other_results
  func.func @keeps_other_results(%d: !x, %w: !dw, %dy: !wide, %h: !wide, %db: !db, %copy: !db) {
    // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2, %arg3) writes [2] params [0, 0, 0, 3]
    ds.call matmul(%d, %w, %dy, %h) writes [2] params [0, 0, 0, 3] on compute : !x, !dw, !wide, !wide
    ds.call fill(%dy) writes [0] params [0.000000e+00] on compute : !wide
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    // CHECK: ds.call matmul(%arg0, %arg1, %arg2, %arg3) writes [2] params [0, 0, 0, 3]
    ds.call matmul(%d, %w, %dy, %h) writes [2] params [0, 0, 0, 3] on compute : !x, !dw, !wide, !wide
    ds.call copy(%db, %copy) writes [1] params [] on compute : !db, !db
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    // CHECK: ds.call matmul(%arg0, %arg1, %arg2, %arg3) writes [2, 3] params [0, 0, 0, 2]
    ds.call matmul(%d, %w, %dy, %h) writes [2, 3] params [0, 0, 0, 2] on compute : !x, !dw, !wide, !wide
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    return
  }

  // The gradient of the input has that factor too, but keeps the dimension that is added up.
  // CHECK-LABEL: func.func @keeps_other_products
  func.func @keeps_other_products(%dy: !wide, %w: !dw, %dx: !x, %db: !db) {
    // CHECK: ds.call matmul(%arg0, %arg1, %arg2) writes [2] params [0, 1, 0, 0]
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    ds.call matmul(%dy, %w, %dx) writes [2] params [0, 1, 0, 0] on compute : !wide, !dw, !x
    return
  }
}

// -----

!wide = !ds.buffer<tensor<4096x768xbf16>, [768, 1], device>
!x = !ds.buffer<tensor<4096x512xbf16>, [512, 1], device>
!dw = !ds.buffer<tensor<512x768xbf16>, [768, 1], device>
!db = !ds.buffer<tensor<768xbf16>, [1], device>

// The CPU has no such product.
module attributes {ds.machine = #ds.machine<target = "cpu">} {
  ds.kernel @whole inputs 1 buffers [!wide, !db] {
  ^bb0(%a: tensor<4096x768xbf16>):
    %s = ds.reduce sum %a dims [0] : tensor<4096x768xbf16> -> tensor<768xbf16>
    ds.yield %s : tensor<768xbf16>
  }
  // CHECK-LABEL: func.func @keeps_other_targets
  func.func @keeps_other_targets(%x: !x, %dy: !wide, %dw: !dw, %db: !db) {
    // CHECK-NEXT: ds.call matmul(%arg0, %arg1, %arg2) writes [2] params [1, 0, 0, 0]
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !wide, !dw
    ds.launch @whole ins(%dy) outs(%db) on compute : (!wide) -> !db
    return
  }
}
