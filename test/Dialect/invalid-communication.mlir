// RUN: ds-opt %s --split-input-file --verify-diagnostics

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @communicate_c1_no_output(%a: !part) {
  // expected-error@+1 {{'ds.communicate' op expects 1 input and 1 output, but got 1 and 0}}
  ds.communicate all_gather ins(%a) outs() along dp on gather : (!part) -> ()
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @communicate_c1_send_receives(%a: !part) {
  // expected-error@+1 {{'ds.communicate' op expects 1 input and 0 output, but got 1 and 1}}
  ds.communicate send ins(%a) outs(%a) along pp on gather : (!part) -> !part
  return
}

// -----

!strided = !ds.buffer<tensor<4xf32>, [2], device>
ds.mesh @mesh axes [dp = 2]
func.func @communicate_c1_strided(%a: !strided) {
  // expected-error@+1 {{'ds.communicate' op expects contiguous buffers, but got '!ds.buffer<tensor<4xf32>, [2], device>'}}
  ds.communicate all_reduce ins(%a) outs(%a) reduce sum along dp on reduce : (!strided) -> !strided
  return
}

// -----

!f32 = !ds.buffer<tensor<4xf32>, [1], device>
!bf16 = !ds.buffer<tensor<8xbf16>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @communicate_c1_types(%a: !f32, %b: !bf16) {
  // expected-error@+1 {{'ds.communicate' op expects one element type, but got 'f32' and 'bf16'}}
  ds.communicate all_gather ins(%a) outs(%b) along dp on gather : (!f32) -> !bf16
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 3]
func.func @communicate_c2_wrong_size(%a: !part, %b: !whole) {
  // expected-error@+1 {{'ds.communicate' op expects 12 elements from 4 on each of 3 ranks, but got 8}}
  ds.communicate all_gather ins(%a) outs(%b) along dp on gather : (!part) -> !whole
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<9xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @communicate_c2_not_divisible(%a: !part, %b: !whole) {
  // expected-error@+1 {{'ds.communicate' op expects 4 elements from 9 on each of 2 ranks, but got 4}}
  ds.communicate reduce_scatter ins(%b) outs(%a) reduce sum along dp on reduce : (!whole) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @communicate_c3_without_reduction(%a: !part) {
  // expected-error@+1 {{'ds.communicate' op expects a reduction exactly for what reduces, but got all_reduce without one}}
  ds.communicate all_reduce ins(%a) outs(%a) along dp on reduce : (!part) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
func.func @communicate_c4_no_mesh(%a: !part) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.communicate' op expects a mesh in its module, but got none}}
  ds.communicate all_reduce ins(%a) outs(%a) reduce sum along dp on reduce : (!part) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @view_c2_last_rank_outside(%b: !whole) {
  // expected-error@+1 {{'ds.view' op expects to end within 8 elements, but got 9}}
  %v = ds.view %b offset 1 shifts [dp = 4] : !whole -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
func.func @view_c3_no_mesh(%b: !whole) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.view' op expects a mesh in its module, but got none}}
  %v = ds.view %b offset 0 shifts [dp = 4] : !whole -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<16xf32>, [1], device>
ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
func.func @view_c2_largest_shift(%b: !whole) {
  %v = ds.view %b offset 0 shifts [dp = 4] : !whole -> !part
  %w = ds.view %b offset 0 shifts [dp.node = 8, dp.local = 4] : !whole -> !part
  // expected-error@+1 {{'ds.view' op expects to end within 16 elements, but got 17}}
  %x = ds.view %b offset 0 shifts [dp.node = 4, dp.local = 9] : !whole -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
// expected-error@+3 {{expects strides that are not negative, but got -4}}
ds.mesh @mesh axes [dp = 2]
func.func @view_shifts_back(%b: !part) {
  %v = ds.view %b offset 4 shifts [dp = -4] : !part -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [pp = 2]
func.func @communicate_c5_no_such_peer(%a: !part) {
  // expected-error@+1 {{'ds.communicate' op expects a peer below 2, but got 2}}
  ds.communicate send ins(%a) outs() along pp on gather {peer = 2 : i64} : (!part) -> ()
  return
}
