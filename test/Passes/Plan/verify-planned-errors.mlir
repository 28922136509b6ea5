// RUN: ds-opt %s --ds-verify-planned --split-input-file --verify-diagnostics

// expected-error@+2 {{expects an arena of the device}}
// expected-note@+1 {{run ds-plan-memory first}}
module @e1_no_plan {
}

// -----

module @e1_state_without_offset {
  ds.arena device bytes 64 lower_bound 0
  // expected-error@+2 {{expects state @w to have an offset}}
  // expected-note@+1 {{run ds-plan-memory first}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
}

// -----

module @e1_input_without_offset {
  ds.arena device bytes 64 lower_bound 0
  // expected-error@+2 {{expects input "x" to have an offset}}
  // expected-note@+1 {{run ds-plan-memory first}}
  func.func @last(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}

// -----

module @e1_allocation_without_offset {
  ds.arena device bytes 64 lower_bound 0
  func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+2 {{expects this activations buffer to have an offset}}
    // expected-note@+1 {{run ds-plan-memory first}}
    %a = ds.alloc activations : !ds.buffer<tensor<4xf32>, [1], device>
    return
  }
}

// -----

module @e2_misaligned {
  ds.arena device bytes 128 lower_bound 0
  // expected-error@+1 {{expects the offset of state @w to be a multiple of 64, but got 32}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 32 : i64} : tensor<4xf32>
}

// -----

// 64 + 4 * 4 = 80.
module @e3_beyond_the_arena {
  ds.arena device bytes 64 lower_bound 0
  // expected-error@+1 {{expects state @w inside the arena's 64 bytes, but got [64, 80)}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 64 : i64} : tensor<4xf32>
}

// -----

module @e3_before_the_arena {
  ds.arena device bytes 64 lower_bound 0
  // expected-error@+1 {{expects state @w inside the arena's 64 bytes, but got [-64, -48)}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = -64 : i64} : tensor<4xf32>
}

// -----

module @e4_input_in_two_places {
  ds.arena device bytes 128 lower_bound 0
  func.func @first(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x", ds.offset = 0 : i64}) attributes {ds.segment = #ds.segment<forward, backward>} {
    return
  }
  // expected-error@+1 {{expects input "x" at offset 0 as in other segments, but got 64}}
  func.func @last(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x", ds.offset = 64 : i64}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}

// -----

// 20 * 4 = 80 bytes reach into the next cache line.
module @e5_states_overlap {
  ds.arena device bytes 256 lower_bound 0
  // expected-note@+1 {{it has bytes [0, 80)}}
  ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 0 : i64} : tensor<20xf32>
  // expected-error@+1 {{expects state @w to lie apart from what lives with it, but bytes [64, 80) of the device overlap state @v}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 64 : i64} : tensor<4xf32>
  func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}

// -----

module @e5_allocation_over_an_input {
  ds.arena device bytes 256 lower_bound 0
  // expected-note@+1 {{it has bytes [0, 80)}}
  func.func @last(%x: !ds.buffer<tensor<20xf32>, [1], device> {ds.input = "x", ds.offset = 0 : i64}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+1 {{expects this activations buffer to lie apart from what lives with it, but bytes [64, 80) of the device overlap input "x"}}
    %a = ds.alloc activations offset 64 : !ds.buffer<tensor<4xf32>, [1], device>
    ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
    return
  }
}

// -----

// One command reads %a and writes %b: both live then.
module @e5_live_in_one_command {
  ds.arena device bytes 256 lower_bound 0
  func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-note@+1 {{it has bytes [0, 16)}}
    %a = ds.alloc activations offset 0 : !ds.buffer<tensor<4xf32>, [1], device>
    // expected-error@+1 {{expects this gradients buffer to lie apart from what lives with it, but bytes [0, 16) of the device overlap this activations buffer}}
    %b = ds.alloc gradients offset 0 : !ds.buffer<tensor<4xf32>, [1], device>
    ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
    ds.call copy(%a, %b) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
    return
  }
}

// -----

// %a is read through a view after %b was written.
module @e5_live_through_a_view {
  ds.arena device bytes 256 lower_bound 0
  func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-note@+1 {{it has bytes [0, 16)}}
    %a = ds.alloc activations offset 0 : !ds.buffer<tensor<4xf32>, [1], device>
    // expected-error@+1 {{expects this gradients buffer to lie apart from what lives with it, but bytes [0, 8) of the device overlap this activations buffer}}
    %b = ds.alloc gradients offset 0 : !ds.buffer<tensor<2xf32>, [1], device>
    %v = ds.view %a offset 2 : !ds.buffer<tensor<4xf32>, [1], device> -> !ds.buffer<tensor<2xf32>, [1], device>
    ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<2xf32>, [1], device>
    ds.call copy(%v, %v) writes [1] params [] on compute : !ds.buffer<tensor<2xf32>, [1], device>, !ds.buffer<tensor<2xf32>, [1], device>
    return
  }
}

// -----

module @e1_no_arena_of_the_space {
  ds.arena device bytes 64 lower_bound 0
  // expected-error@+1 {{expects an arena of space host, in which state @w lies}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) {offset = 0 : i64} : tensor<4xf32>
}

// -----

module @e3_beyond_the_arena_of_the_host {
  ds.arena device bytes 4096 lower_bound 0
  ds.arena host bytes 64 lower_bound 0
  // expected-error@+1 {{expects state @w inside the arena's 64 bytes, but got [64, 80)}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) {offset = 64 : i64} : tensor<4xf32>
}

// -----

module @e5_states_of_the_host_overlap {
  ds.arena device bytes 64 lower_bound 0
  ds.arena host bytes 64 lower_bound 0
  // expected-note@+1 {{it has bytes [0, 16)}}
  ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) {offset = 0 : i64} : tensor<4xf32>
  // expected-error@+1 {{expects state @w to lie apart from what lives with it, but bytes [0, 16) of the host overlap state @v}}
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) {offset = 0 : i64} : tensor<4xf32>
  func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}
