// RUN: ds-opt %s --ds-join-column-sums --split-input-file | FileCheck %s

!x = !ds.buffer<tensor<256x16x768xbf16>, [12288, 768, 1], device>
!row = !ds.buffer<tensor<256x16xf32>, [16, 1], device>
!parts = !ds.buffer<tensor<16x768xf32>, [768, 1], device>
!wide = !ds.buffer<tensor<768xf32>, [1], device>
!sum = !ds.buffer<tensor<768xbf16>, [1], device>
!odd = !ds.buffer<tensor<64x2x1003xbf16>, [2006, 1003, 1], device>
!oddparts = !ds.buffer<tensor<2x1003xf32>, [1003, 1], device>
!oddsum = !ds.buffer<tensor<1003xf32>, [1], device>

module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
  ds.kernel @parts inputs 1 buffers [!x, !parts] {
  ^bb0(%a: tensor<256x16x768xbf16>):
    %w = ds.convert %a : tensor<256x16x768xbf16> -> tensor<256x16x768xf32>
    %s = ds.reduce sum %w dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
    ds.yield %s : tensor<16x768xf32>
  }
  ds.kernel @sum inputs 1 buffers [!parts, !sum] {
  ^bb0(%a: tensor<16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<16x768xf32> -> tensor<768xf32>
    %r = ds.convert %s : tensor<768xf32> -> tensor<768xbf16>
    ds.yield %r : tensor<768xbf16>
  }
  ds.kernel @gains inputs 2 buffers [!x, !row, !parts, !parts] {
  ^bb0(%a: tensor<256x16x768xbf16>, %b: tensor<256x16xf32>):
    %w = ds.convert %a : tensor<256x16x768xbf16> -> tensor<256x16x768xf32>
    %c = ds.broadcast %b dims [0, 1] : tensor<256x16xf32> -> tensor<256x16x768xf32>
    %y = ds.mul %w, %c : tensor<256x16x768xf32>
    %s = ds.reduce sum %w dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
    %t = ds.reduce sum %y dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
    ds.yield %s, %t : tensor<16x768xf32>, tensor<16x768xf32>
  }
  ds.kernel @add_onto inputs 3 buffers [!wide, !parts, !parts, !wide, !wide] {
  ^bb0(%old: tensor<768xf32>, %a: tensor<16x768xf32>, %b: tensor<16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<16x768xf32> -> tensor<768xf32>
    %t = ds.reduce sum %b dims [0] : tensor<16x768xf32> -> tensor<768xf32>
    %u = ds.add %t, %old : tensor<768xf32>
    ds.yield %s, %u : tensor<768xf32>, tensor<768xf32>
  }
  // Columns of one part: nothing that adds up reads them whole.
  ds.kernel @double inputs 1 buffers [!parts, !parts] {
  ^bb0(%a: tensor<16x768xf32>):
    %s = ds.add %a, %a : tensor<16x768xf32>
    ds.yield %s : tensor<16x768xf32>
  }
  ds.kernel @odd_parts inputs 1 buffers [!odd, !oddparts] {
  ^bb0(%a: tensor<64x2x1003xbf16>):
    %w = ds.convert %a : tensor<64x2x1003xbf16> -> tensor<64x2x1003xf32>
    %s = ds.reduce sum %w dims [0] : tensor<64x2x1003xf32> -> tensor<2x1003xf32>
    ds.yield %s : tensor<2x1003xf32>
  }
  ds.kernel @odd_sum inputs 1 buffers [!oddparts, !oddsum] {
  ^bb0(%a: tensor<2x1003xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<2x1003xf32> -> tensor<1003xf32>
    ds.yield %s : tensor<1003xf32>
  }
  ds.kernel @scale inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%a: tensor<?xf32>):
    %s = ds.add %a, %a : tensor<?xf32>
    ds.yield %s : tensor<?xf32>
  }

  // The parts stay memory of the launch.
  // CHECK-LABEL: func.func @joins_a_bias
  func.func @joins_a_bias(%x: !x, %db: !sum) {
    // CHECK-NEXT: %[[PARTS:.*]] = ds.alloc activations : !ds.buffer<tensor<16x768xf32>
    // CHECK-NEXT: ds.launch @parts_sum ins(%arg0) outs(%[[PARTS]], %arg1) on compute {ds.work = #ds.work<backward>}
    // CHECK-NEXT: return
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute {ds.work = #ds.work<backward>} : (!x) -> !parts
    ds.launch @sum ins(%p) outs(%db) on compute {ds.work = #ds.work<backward>} : (!parts) -> !sum
    return
  }

  // Equal pairs have one kernel. What comes between as an allocation is no command; memory goes to its first use.
  // CHECK-LABEL: func.func @joins_equal_pairs
  func.func @joins_equal_pairs(%x: !x, %y: !x) {
    // CHECK: ds.launch @parts_sum ins(%arg0)
    // CHECK: ds.launch @parts_sum ins(%arg1)
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    %a = ds.alloc gradients : !sum
    ds.launch @sum ins(%p) outs(%a) on compute : (!parts) -> !sum
    %q = ds.alloc activations : !parts
    ds.launch @parts ins(%y) outs(%q) on compute : (!x) -> !parts
    %b = ds.alloc gradients : !sum
    ds.launch @sum ins(%q) outs(%b) on compute : (!parts) -> !sum
    return
  }

  // Two sums, of which the second is added to what is there, in place: an input that is no part comes behind the first kernel's.
  // CHECK-LABEL: func.func @joins_two_sums
  func.func @joins_two_sums(%x: !x, %row: !row, %gain: !wide, %bias: !wide) {
    // CHECK: ds.launch @gains_add_onto ins(%arg0, %arg1, %arg2) outs(%[[P:.*]], %[[Q:.*]], %arg3, %arg2)
    %p = ds.alloc activations : !parts
    %q = ds.alloc activations : !parts
    ds.launch @gains ins(%x, %row) outs(%p, %q) on compute : (!x, !row) -> (!parts, !parts)
    ds.launch @add_onto ins(%gain, %p, %q) outs(%bias, %gain) on compute : (!wide, !parts, !parts) -> (!wide, !wide)
    return
  }

  // What others read as well stays what it was.
  // CHECK-LABEL: func.func @joins_parts_that_are_read_again
  func.func @joins_parts_that_are_read_again(%x: !x, %db: !sum, %out: !parts) {
    // CHECK: ds.launch @parts_sum ins(%arg0) outs(%[[PARTS:.*]], %arg1)
    // CHECK-NEXT: ds.launch @double ins(%[[PARTS]]) outs(%arg2)
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.launch @sum ins(%p) outs(%db) on compute : (!parts) -> !sum
    ds.launch @double ins(%p) outs(%out) on compute : (!parts) -> !parts
    return
  }

  // Something comes between.
  // CHECK-LABEL: func.func @keeps_what_is_apart
  func.func @keeps_what_is_apart(%x: !x, %db: !sum, %w: !wide) {
    // CHECK: ds.launch @parts ins
    // CHECK-NEXT: ds.call fill
    // CHECK-NEXT: ds.launch @sum ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.call fill(%w) writes [0] params [0.0 : f64] on compute : !wide
    ds.launch @sum ins(%p) outs(%db) on compute : (!parts) -> !sum
    return
  }

  // The sums are those of other parts.
  // CHECK-LABEL: func.func @keeps_sums_of_others
  func.func @keeps_sums_of_others(%x: !x, %db: !sum, %other: !parts) {
    // CHECK: ds.launch @parts ins
    // CHECK-NEXT: ds.launch @sum ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.launch @sum ins(%other) outs(%db) on compute : (!parts) -> !sum
    return
  }

  // The second reads a window of the parts beside them, or writes where the first reads.
  // CHECK-LABEL: func.func @keeps_what_overlaps
  func.func @keeps_what_overlaps(%x: !x, %row: !row, %bias: !wide) {
    // CHECK: ds.launch @gains ins
    // CHECK: ds.launch @add_onto ins
    // CHECK: ds.launch @parts ins
    // CHECK: ds.launch @sum ins
    %p = ds.alloc activations : !parts
    %q = ds.alloc activations : !parts
    %window = ds.view %q offset 768 : !parts -> !wide
    %gain = ds.alloc gradients : !wide
    ds.launch @gains ins(%x, %row) outs(%p, %q) on compute : (!x, !row) -> (!parts, !parts)
    ds.launch @add_onto ins(%window, %p, %q) outs(%bias, %gain) on compute : (!wide, !parts, !parts) -> (!wide, !wide)
    %r = ds.alloc activations : !parts
    %start = ds.view %x offset 0 : !x -> !sum
    ds.launch @parts ins(%x) outs(%r) on compute : (!x) -> !parts
    ds.launch @sum ins(%r) outs(%start) on compute : (!parts) -> !sum
    return
  }

  // Forward and backward.
  // CHECK-LABEL: func.func @keeps_other_work
  func.func @keeps_other_work(%x: !x, %db: !sum) {
    // CHECK: ds.launch @parts ins
    // CHECK-NEXT: ds.launch @sum ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute {ds.work = #ds.work<forward>} : (!x) -> !parts
    ds.launch @sum ins(%p) outs(%db) on compute {ds.work = #ds.work<backward>} : (!parts) -> !sum
    return
  }

  // CHECK-LABEL: func.func @keeps_other_streams
  func.func @keeps_other_streams(%x: !x, %db: !sum) {
    // CHECK: ds.launch @parts ins
    // CHECK-NEXT: ds.launch @sum ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.launch @sum ins(%p) outs(%db) on transfer : (!parts) -> !sum
    return
  }

  // Elementwise, of this size and of any.
  // CHECK-LABEL: func.func @keeps_what_adds_up_nothing
  func.func @keeps_what_adds_up_nothing(%x: !x, %out: !parts, %w: !wide) {
    // CHECK: ds.launch @parts ins
    // CHECK-NEXT: ds.launch @double ins
    // CHECK-NEXT: ds.launch @scale ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.launch @double ins(%p) outs(%out) on compute : (!parts) -> !parts
    ds.launch @scale ins(%w) outs(%w) extent 768 on compute : (!wide) -> !wide
    return
  }

  // A block's strip of 8 columns would be of both parts.
  // CHECK-LABEL: func.func @keeps_odd_columns
  func.func @keeps_odd_columns(%x: !odd, %s: !oddsum) {
    // CHECK: ds.launch @odd_parts ins
    // CHECK-NEXT: ds.launch @odd_sum ins
    %p = ds.alloc activations : !oddparts
    ds.launch @odd_parts ins(%x) outs(%p) on compute : (!odd) -> !oddparts
    ds.launch @odd_sum ins(%p) outs(%s) on compute : (!oddparts) -> !oddsum
    return
  }

  // Both bodies, the second on what the first yields.
  // CHECK: ds.kernel @parts_sum inputs 1 buffers [
  // CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<256x16x768xbf16>):
  // CHECK-NEXT: %[[W:.*]] = ds.convert %[[X]]
  // CHECK-NEXT: %[[P:.*]] = ds.reduce sum %[[W]] dims [0]
  // CHECK-NEXT: %[[S:.*]] = ds.reduce sum %[[P]] dims [0]
  // CHECK-NEXT: %[[R:.*]] = ds.convert %[[S]]
  // CHECK-NEXT: ds.yield %[[P]], %[[R]] : tensor<16x768xf32>, tensor<768xbf16>
  // CHECK: ds.kernel @gains_add_onto inputs 3
}

// -----

!x = !ds.buffer<tensor<256x16x768xf32>, [12288, 768, 1], device>
!parts = !ds.buffer<tensor<16x768xf32>, [768, 1], device>
!sum = !ds.buffer<tensor<768xf32>, [1], device>

module attributes {ds.machine = #ds.machine<target = "cpu">} {
  ds.kernel @parts inputs 1 buffers [!x, !parts] {
  ^bb0(%a: tensor<256x16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
    ds.yield %s : tensor<16x768xf32>
  }
  ds.kernel @sum inputs 1 buffers [!parts, !sum] {
  ^bb0(%a: tensor<16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<16x768xf32> -> tensor<768xf32>
    ds.yield %s : tensor<768xf32>
  }
  // CHECK-LABEL: func.func @keeps_launches_of_a_cpu
  func.func @keeps_launches_of_a_cpu(%x: !x, %s: !sum) {
    // CHECK: ds.launch @parts ins
    // CHECK-NEXT: ds.launch @sum ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.launch @sum ins(%p) outs(%s) on compute : (!parts) -> !sum
    return
  }
}

// -----

!x = !ds.buffer<tensor<256x16x768xf32>, [12288, 768, 1], device>
!parts = !ds.buffer<tensor<16x768xf32>, [768, 1], device>
!sum = !ds.buffer<tensor<768xf32>, [1], device>

// Kernels that nothing launches any more are gone.
module attributes {ds.machine = #ds.machine<target = "cuda:sm_80">} {
  // CHECK-NOT: ds.kernel @parts inputs
  // CHECK-NOT: ds.kernel @sum inputs
  ds.kernel @parts inputs 1 buffers [!x, !parts] {
  ^bb0(%a: tensor<256x16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
    ds.yield %s : tensor<16x768xf32>
  }
  ds.kernel @sum inputs 1 buffers [!parts, !sum] {
  ^bb0(%a: tensor<16x768xf32>):
    %s = ds.reduce sum %a dims [0] : tensor<16x768xf32> -> tensor<768xf32>
    ds.yield %s : tensor<768xf32>
  }
  // CHECK-LABEL: func.func @drops_kernels
  func.func @drops_kernels(%x: !x, %s: !sum) {
    // CHECK: ds.launch @parts_sum ins
    %p = ds.alloc activations : !parts
    ds.launch @parts ins(%x) outs(%p) on compute : (!x) -> !parts
    ds.launch @sum ins(%p) outs(%s) on compute : (!parts) -> !sum
    return
  }
  // CHECK: ds.kernel @parts_sum inputs 1
  // CHECK-NOT: ds.kernel
}
