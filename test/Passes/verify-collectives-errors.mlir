// RUN: ds-opt %s --ds-verify-collectives --split-input-file --verify-diagnostics

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e1_recorded_twice() {
  // expected-note@+1 {{it is recorded here}}
  ds.record 0 on compute
  // expected-error@+1 {{'ds.record' op expects to be the only one to record event 0}}
  ds.record 0 on gather
  return
}

// -----

func.func @e1_waits_for_what_comes_later() {
  // expected-error@+1 {{'ds.wait' op expects event 0 to be recorded before it is waited for, or stream compute never goes on}}
  ds.wait 0 on compute
  ds.record 0 on compute
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e2_reads_before_the_gather(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  %f = ds.alloc "communication" : !whole
  // expected-note@+1 {{no event orders it behind this one}}
  ds.communicate all_gather ins(%w) outs(%f) axis dp number 0 on gather : (!part) -> !whole
  ds.record 0 on gather
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it reads bytes [0, 32) that are written there}}
  ds.call "copy"(%f, %x) writes [1] params [] on compute : !whole, !whole
  ds.wait 0 on compute
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e2_event_comes_too_early(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  ds.record 0 on compute
  // expected-note@+1 {{no event orders it behind this one}}
  ds.call "fill"(%x) writes [0] params [0.0] on compute : !whole
  ds.wait 0 on reduce
  // expected-error@+1 {{'ds.communicate' op expects stream reduce to wait for stream compute: it reads bytes [0, 32) that are written there}}
  ds.communicate reduce_scatter ins(%x) outs(%w) reduce sum axis dp number 0 on reduce : (!whole) -> !part
  return
}

// -----

// The update waits for a gather of another rank's part as well: the windows of all ranks count.
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
func.func @e2_window_of_another_rank(%x: !whole {ds.input = "x"}, %y: !part {ds.input = "y"}) {
  %own = ds.view %x offset 0 axis dp stride 4 : !whole -> !part
  %second = ds.view %x offset 4 : !whole -> !part
  // expected-note@+1 {{no event orders it behind this one}}
  ds.communicate all_reduce ins(%own) outs(%own) reduce sum axis dp number 0 on reduce : (!part) -> !part
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream reduce: it reads bytes [16, 32) that are written there}}
  ds.call "copy"(%second, %y) writes [1] params [] on compute : !part, !part
  return
}

// -----

// Memory that is given out again: after planning, whoever lies in the same place.
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
module attributes {ds.plan = {arena = 192 : i64, lower_bound = 192 : i64}} {
  ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.offset = 0 : i64} : tensor<4xf32>
  func.func @e2_reuse(%x: !whole {ds.input = "x", ds.offset = 64 : i64}, %w: !part {ds.state = @w}) {
    %f = ds.alloc "communication" offset 128 : !whole
    // expected-note@+1 {{no event orders it behind this one}}
    ds.communicate all_gather ins(%w) outs(%f) axis dp number 0 on gather : (!part) -> !whole
    %y = ds.alloc "activations" offset 128 : !whole
    // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it writes bytes [128, 160) that are written there}}
    ds.call "fill"(%y) writes [0] params [0.0] on compute : !whole
    return
  }
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e3_reordered(%w: !part {ds.state = @w}) {
  // expected-error@+1 {{'ds.communicate' op expects to be collective number 0, but is number 1}}
  ds.communicate all_reduce ins(%w) outs(%w) reduce sum axis dp number 1 on reduce : (!part) -> !part
  ds.communicate all_reduce ins(%w) outs(%w) reduce max axis dp number 0 on reduce : (!part) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e3_no_number(%w: !part {ds.state = @w}) {
  // expected-error@+2 {{'ds.communicate' op expects to be collective number 0}}
  // expected-note@+1 {{run ds-insert-events first}}
  ds.communicate all_reduce ins(%w) outs(%w) reduce sum axis dp on reduce : (!part) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]
func.func @e4_another_ranks_place(%x: !whole {ds.input = "x"}) {
  %first = ds.view %x offset 0 : !whole -> !part
  // expected-error@+1 {{'ds.communicate' op expects input and output apart, or each rank's part in its place in the whole}}
  ds.communicate all_gather ins(%first) outs(%x) axis dp number 0 on gather : (!part) -> !whole
  return
}

// -----

// expected-error@+1 {{'func.func' op expects one block: where ranks branch, they may issue different collectives}}
func.func @e5_branches(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) {
  func.return
^next:
  func.return
}
