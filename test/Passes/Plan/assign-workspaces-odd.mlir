// RUN: ds-opt %s --ds-assign-workspaces --split-input-file | FileCheck %s

// A weight of [768, 50257], whose rows begin on 2 bytes, and logits in rows that lie apart.
!x = !ds.buffer<tensor<8192x768xbf16>, [768, 1], device>
!w = !ds.buffer<tensor<768x50257xbf16>, [50257, 1], device>
!y = !ds.buffer<tensor<8192x50257xbf16>, [50304, 1], device>
!few = !ds.buffer<tensor<32x768xbf16>, [768, 1], device>
!fewer = !ds.buffer<tensor<32x50257xbf16>, [50304, 1], device>
!odd = !ds.buffer<tensor<8192x767xbf16>, [768, 1], device>
!owner = !ds.buffer<tensor<767x50257xbf16>, [50257, 1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", cluster = "h100-80g">} {
// The product is predicted to take 4.1 ms as the weight lies, 0.9 ms on a copy and 0.3 ms to copy it: 768 rows of 50304 elements of 2
// bytes, 77266944, before the 32 MiB of the library.
// CHECK-LABEL: @copies_a_weight
func.func @copies_a_weight(%x: !x, %w: !w, %y: !y) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<110821376xi8>, [1], device>
  ds.call matmul(%x, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !y
  return
}

// And its gradient, which is the result.
// CHECK-LABEL: @copies_a_gradient
func.func @copies_a_gradient(%x: !x, %y: !y, %dw: !w) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<110821376xi8>, [1], device>
  ds.call matmul(%x, %y, %dw) writes [2] params [1, 0, 0, 0] on compute : !x, !y, !w
  return
}

// 32 rows are multiplied sooner than the weight is copied.
// CHECK-LABEL: @keeps_what_costs_more_to_copy
func.func @keeps_what_costs_more_to_copy(%x: !few, %w: !w, %y: !fewer) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<33554432xi8>, [1], device>
  ds.call matmul(%x, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !few, !w, !fewer
  return
}

// Two odd sizes have no fast form in two calls.
// CHECK-LABEL: @keeps_what_no_copy_helps
func.func @keeps_what_no_copy_helps(%x: !odd, %w: !owner, %y: !y) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<33554432xi8>, [1], device>
  ds.call matmul(%x, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !odd, !owner, !y
  return
}
}

// -----

// Rates of nothing in particular know no odd rows.
!x = !ds.buffer<tensor<8192x768xbf16>, [768, 1], device>
!w = !ds.buffer<tensor<768x50257xbf16>, [50257, 1], device>
!y = !ds.buffer<tensor<8192x50257xbf16>, [50304, 1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// CHECK-LABEL: @keeps_what_is_not_known_to_gain
func.func @keeps_what_is_not_known_to_gain(%x: !x, %w: !w, %y: !y) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<33554432xi8>, [1], device>
  ds.call matmul(%x, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !y
  return
}
}

// -----

// A byte less than the library and the copy want together: the copy is left out.
!x = !ds.buffer<tensor<8192x768xbf16>, [768, 1], device>
!w = !ds.buffer<tensor<768x50257xbf16>, [50257, 1], device>
!y = !ds.buffer<tensor<8192x50257xbf16>, [50304, 1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90", cluster = "h100-80g", memory = {device = 110821375}>} {
// CHECK-LABEL: @keeps_within_memory
func.func @keeps_within_memory(%x: !x, %w: !w, %y: !y) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<33554432xi8>, [1], device>
  ds.call matmul(%x, %w, %y) writes [2] params [0, 0, 0, 0] on compute : !x, !w, !y
  return
}
}
