// RUN: ds-opt %s --ds-verify-collectives --split-input-file --verify-diagnostics

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
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
  // expected-error@+1 {{'ds.wait' op expects event 0 to be recorded before it is waited for, or stream compute never continues}}
  ds.wait 0 on compute
  ds.record 0 on compute
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e2_reads_before_the_gather(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  %f = ds.alloc communication : !whole
  // expected-note@+1 {{no event orders it after this one}}
  ds.communicate all_gather ins(%w) outs(%f) along dp number 0 on gather : (!part) -> !whole
  ds.record 0 on gather
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it reads bytes [0, 32) that are written there}}
  ds.call copy(%f, %x) writes [1] params [] on compute : !whole, !whole
  ds.wait 0 on compute
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e2_event_comes_too_early(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  ds.record 0 on compute
  // expected-note@+1 {{no event orders it after this one}}
  ds.call fill(%x) writes [0] params [0.0] on compute : !whole
  ds.wait 0 on reduce
  // expected-error@+1 {{'ds.communicate' op expects stream reduce to wait for stream compute: it reads bytes [0, 32) that are written there}}
  ds.communicate reduce_scatter ins(%x) outs(%w) reduce sum along dp number 0 on reduce : (!whole) -> !part
  return
}

// -----

// The update waits for a gather of another rank's part as well: the windows of all ranks count.
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @e2_window_of_another_rank(%x: !whole {ds.input = "x"}, %y: !part {ds.input = "y"}) {
  %own = ds.view %x offset 0 shifts [dp = 4] : !whole -> !part
  %second = ds.view %x offset 4 : !whole -> !part
  // expected-note@+1 {{no event orders it after this one}}
  ds.communicate all_reduce ins(%own) outs(%own) reduce sum along dp number 0 on reduce : (!part) -> !part
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream reduce: it reads bytes [16, 32) that are written there}}
  ds.call copy(%second, %y) writes [1] params [] on compute : !part, !part
  return
}

// -----

// Memory that is given out again: after planning, whoever lies in the same place.
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
module {
  ds.arena device bytes 192 lower_bound 192
  ds.mesh @mesh axes [dp = 2]
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 0 : i64} : tensor<4xf32>
  func.func @e2_reuse(%x: !whole {ds.input = "x", ds.offset = 64 : i64}, %w: !part {ds.state = @w}) {
    %f = ds.alloc communication offset 128 : !whole
    // expected-note@+1 {{no event orders it after this one}}
    ds.communicate all_gather ins(%w) outs(%f) along dp number 0 on gather : (!part) -> !whole
    %y = ds.alloc activations offset 128 : !whole
    // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it writes bytes [128, 160) that are written there}}
    ds.call fill(%y) writes [0] params [0.0] on compute : !whole
    return
  }
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e3_reordered(%w: !part {ds.state = @w}) {
  // expected-error@+1 {{'ds.communicate' op expects to be collective number 0, but is number 1}}
  ds.communicate all_reduce ins(%w) outs(%w) reduce sum along dp number 1 on reduce : (!part) -> !part
  ds.communicate all_reduce ins(%w) outs(%w) reduce max along dp number 0 on reduce : (!part) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e3_no_number(%w: !part {ds.state = @w}) {
  // expected-error@+2 {{'ds.communicate' op expects to be collective number 0}}
  // expected-note@+1 {{run ds-insert-events first}}
  ds.communicate all_reduce ins(%w) outs(%w) reduce sum along dp on reduce : (!part) -> !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @e4_another_ranks_place(%x: !whole {ds.input = "x"}) {
  %first = ds.view %x offset 0 : !whole -> !part
  // expected-error@+1 {{'ds.communicate' op expects input and output apart, or each rank's part in its place in the whole}}
  ds.communicate all_gather ins(%first) outs(%x) along dp number 0 on gather : (!part) -> !whole
  return
}

// -----

// expected-error@+1 {{'func.func' op expects one block: where ranks branch, they may issue different collectives}}
func.func @e5_branches(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) {
  func.return
^next:
  func.return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// What a collective works in is written while it runs.
func.func @e2_workspace_of_a_collective(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  %s = ds.alloc workspace : !part
  // expected-note@+1 {{no event orders it after this one}}
  ds.communicate reduce_scatter ins(%x) outs(%w) reduce sum along dp number 0 workspace(%s : !part) on reduce : (!whole) -> !part
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream reduce: it writes bytes [0, 16) that are written there}}
  ds.call fill(%s) writes [0] params [0.0] on compute : !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @e2_workspace_of_a_call(%x: !whole {ds.input = "x"}, %y: !whole {ds.input = "y"}, %w: !part {ds.state = @w}) {
  // expected-note@+1 {{no event orders it after this one}}
  ds.communicate reduce_scatter ins(%x) outs(%w) reduce sum along dp number 0 on reduce : (!whole) -> !part
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream reduce: it writes bytes [0, 16) that are written there}}
  ds.call fill(%y) writes [0] params [0.0] workspace(%w : !part) on compute : !whole
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// Who writes waits for who reads.
func.func @e2_writes_what_is_being_gathered(%w: !part {ds.state = @w}) {
  %f = ds.alloc communication : !whole
  // expected-note@+1 {{no event orders it after this one}}
  ds.communicate all_gather ins(%w) outs(%f) along dp number 0 on gather : (!part) -> !whole
  // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it writes bytes [0, 16) that are read there}}
  ds.call fill(%w) writes [0] params [0.0] on compute : !part
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
ds.kernel @double inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%v: tensor<4xf32>):
  %d = ds.add %v, %v : tensor<4xf32>
  ds.yield %d : tensor<4xf32>
}
func.func @e2_launch_reads_before_the_gather(%x: !part {ds.input = "x"}, %w: !part {ds.state = @w}) {
  // expected-note@+1 {{no event orders it after this one}}
  ds.communicate all_reduce ins(%w) outs(%w) reduce sum along dp number 0 on reduce : (!part) -> !part
  // expected-error@+1 {{'ds.launch' op expects stream compute to wait for stream reduce: it reads bytes [0, 16) that are written there}}
  ds.launch @double ins(%w) outs(%x) on compute : (!part) -> (!part)
  return
}

// -----

// An input has its place as well once it is planned.
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
module {
  ds.arena device bytes 128 lower_bound 128
  ds.mesh @mesh axes [dp = 2]
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 0 : i64} : tensor<4xf32>
  func.func @e2_reuse_of_an_input(%x: !whole {ds.input = "x", ds.offset = 64 : i64}, %w: !part {ds.state = @w}) {
    %f = ds.alloc communication offset 64 : !whole
    // expected-note@+1 {{no event orders it after this one}}
    ds.communicate all_gather ins(%w) outs(%f) along dp number 0 on gather : (!part) -> !whole
    // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it writes bytes [64, 96) that are written there}}
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    return
  }
}

// -----

// So has a state.
!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
module {
  ds.arena device bytes 128 lower_bound 128
  ds.mesh @mesh axes [dp = 2]
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 0 : i64} : tensor<4xf32>
  ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 64 : i64} : tensor<4xf32>
  func.func @e2_reuse_of_a_state(%w: !part {ds.state = @w}, %v: !part {ds.state = @v}) {
    %f = ds.alloc communication offset 64 : !whole
    // expected-note@+1 {{no event orders it after this one}}
    ds.communicate all_gather ins(%w) outs(%f) along dp number 0 on gather : (!part) -> !whole
    // expected-error@+1 {{'ds.call' op expects stream compute to wait for stream gather: it writes bytes [64, 80) that are written there}}
    ds.call fill(%v) writes [0] params [0.0] on compute : !part
    return
  }
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
// Ranks' parts lie side by side, not with room between them.
func.func @e4_parts_apart(%x: !ds.buffer<tensor<12xf32>, [1], device> {ds.input = "x"}) {
  %own = ds.view %x offset 0 shifts [dp = 8] : !ds.buffer<tensor<12xf32>, [1], device> -> !part
  %out = ds.view %x offset 0 : !ds.buffer<tensor<12xf32>, [1], device> -> !whole
  // expected-error@+1 {{'ds.communicate' op expects input and output apart, or each rank's part in its place in the whole}}
  ds.communicate all_gather ins(%own) outs(%out) along dp number 0 on gather : (!part) -> !whole
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @e4_parts_begin_later(%x: !ds.buffer<tensor<12xf32>, [1], device> {ds.input = "x"}) {
  %own = ds.view %x offset 4 shifts [dp = 4] : !ds.buffer<tensor<12xf32>, [1], device> -> !part
  %out = ds.view %x offset 0 : !ds.buffer<tensor<12xf32>, [1], device> -> !whole
  // expected-error@+1 {{'ds.communicate' op expects input and output apart, or each rank's part in its place in the whole}}
  ds.communicate all_gather ins(%own) outs(%out) along dp number 0 on gather : (!part) -> !whole
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @e4_sum_beside_its_place(%x: !ds.buffer<tensor<12xf32>, [1], device> {ds.input = "x"}) {
  %a = ds.view %x offset 0 : !ds.buffer<tensor<12xf32>, [1], device> -> !whole
  %b = ds.view %x offset 4 : !ds.buffer<tensor<12xf32>, [1], device> -> !whole
  // expected-error@+1 {{'ds.communicate' op expects input and output apart, or each rank's part in its place in the whole}}
  ds.communicate all_reduce ins(%a) outs(%b) reduce sum along dp number 0 on reduce : (!whole) -> !whole
  return
}

// -----

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] items 2 {
^bb0(%x: tensor<?xf32>):
  ds.yield %x : tensor<?xf32>
}
func.func @e6_items_overlap(%a: !whole {ds.input = "a"}, %b: !part {ds.input = "b"}) {
  %high = ds.view %a offset 4 : !whole -> !part
  %low = ds.view %a offset 0 : !whole -> !part
  ds.launch @k ins(%low, %high) outs(%low, %high) extent 4, 4 on compute : (!part, !part) -> (!part, !part)
  // expected-error@+1 {{'ds.launch' op expects items that run at once, but item 1 writes bytes [16, 32) that another reads}}
  ds.launch @k ins(%a, %b) outs(%a, %high) extent 8, 4 on compute : (!whole, !part) -> (!whole, !part)
  return
}

// -----

// E2. A copy to the host runs beside what computes: nobody may write its source meanwhile.
!device = !ds.buffer<tensor<4xf32>, [1], device>
!host = !ds.buffer<tensor<4xf32>, [1], host>
func.func @transfer_race(%a: !device, %h: !host) {
  // expected-note@+1 {{no event orders it after this one}}
  ds.transfer %a to %h on to_host : !device, !host
  // expected-error@+1 {{expects stream compute to wait for stream to_host: it writes bytes [0, 16) that are read there}}
  ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !device
  return
}

// -----

// E2. Each way of copies has a stream: what loads waits for what has stored.
!device = !ds.buffer<tensor<4xf32>, [1], device>
!host = !ds.buffer<tensor<4xf32>, [1], host>
func.func @both_ways_race(%a: !device, %h: !host) {
  // expected-note@+1 {{no event orders it after this one}}
  ds.transfer %a to %h on to_host : !device, !host
  %b = ds.alloc activations offset 64 : !device
  // expected-error@+1 {{expects stream to_device to wait for stream to_host: it reads bytes [0, 16) that are written there}}
  ds.transfer %h to %b on to_device : !host, !device
  return
}

// -----

// The same bytes of two spaces are not the same bytes; those of one space are.
!device = !ds.buffer<tensor<4xf32>, [1], device>
!host = !ds.buffer<tensor<4xf32>, [1], host>
module {
  ds.arena device bytes 128 lower_bound 128
  ds.arena host bytes 64 lower_bound 64
  ds.state @a role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 64 : i64} : tensor<4xf32>
  ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 0 : i64} : tensor<4xf32>
  ds.state @h role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) {offset = 0 : i64} : tensor<4xf32>
  ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) {offset = 0 : i64} : tensor<4xf32>
  func.func @apart(%a: !device {ds.state = @a}, %b: !device {ds.state = @b}, %h: !host {ds.state = @h}, %g: !host {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-note@+1 {{no event orders it after this one}}
    ds.transfer %a to %h on to_host : !device, !host
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !device
    // expected-error@+1 {{expects stream compute to wait for stream to_host: it writes bytes [0, 16) that are written there}}
    ds.call fill(%g) writes [0] params [0.0 : f64] on compute : !host
    return
  }
}

// -----

// What is one buffer in and out is where the runtime lets it be: a part that is sent must not be overwritten before.
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
func.func @e4_exchange_in_place(%x: !whole {ds.input = "x"}) {
  // expected-error@+1 {{'ds.communicate' op expects input and output apart, or each rank's part in its place in the whole}}
  ds.communicate all_to_all ins(%x) outs(%x) along dp number 0 on gather : (!whole) -> !whole
  return
}
