// RUN: ds-opt %s --ds-verify-scheduled --split-input-file --verify-diagnostics

// E8: segments that update and are not scheduled make updates that a step has left.
!b = !ds.buffer<tensor<4xf32>, [1], device>
module @e8_accepted {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @late_0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.work = #ds.work<update>} : tensor<4xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  func.func @rotated(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  func.func @flush(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  ds.kernel @double inputs 1 buffers [!b, !b] {
  ^bb0(%x: tensor<4xf32>):
    %z = ds.add %x, %x : tensor<4xf32>
    ds.yield %z : tensor<4xf32>
  }
}

// -----

!b = !ds.buffer<tensor<4xf32>, [1], device>
module @e8_alone {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @late_0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.work = #ds.work<update>} : tensor<4xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  // expected-error@+1 {{'func.func' op updates and is not scheduled: expects a segment beside it that updates and does nothing else}}
  func.func @rotated(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  ds.kernel @double inputs 1 buffers [!b, !b] {
  ^bb0(%x: tensor<4xf32>):
    %z = ds.add %x, %x : tensor<4xf32>
    ds.yield %z : tensor<4xf32>
  }
}

// -----

!b = !ds.buffer<tensor<4xf32>, [1], device>
module @e8_other_work {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @late_0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.work = #ds.work<update>} : tensor<4xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  // expected-error@+1 {{'func.func' op expects to do what #ds.run<@last, first 0, count 1, gradients set, reduced true> does, and updates, but got #ds.segment<forward, update>}}
  func.func @rotated(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  func.func @flush(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  ds.kernel @double inputs 1 buffers [!b, !b] {
  ^bb0(%x: tensor<4xf32>):
    %z = ds.add %x, %x : tensor<4xf32>
    ds.yield %z : tensor<4xf32>
  }
}

// -----

!b = !ds.buffer<tensor<4xf32>, [1], device>
module @e8_not_updated {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @late_0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.work = #ds.work<update>} : tensor<4xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  // expected-error@+1 {{'func.func' op expects to update @m, as flush does}}
  func.func @rotated(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%l) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  func.func @flush(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  ds.kernel @double inputs 1 buffers [!b, !b] {
  ^bb0(%x: tensor<4xf32>):
    %z = ds.add %x, %x : tensor<4xf32>
    ds.yield %z : tensor<4xf32>
  }
}

// -----

!b = !ds.buffer<tensor<4xf32>, [1], device>
module @e8_read_before {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @late_0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.work = #ds.work<update>} : tensor<4xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  func.func @rotated(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+1 {{'ds.launch' op touches @m, which is still to be updated}}
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  func.func @flush(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  ds.kernel @double inputs 1 buffers [!b, !b] {
  ^bb0(%x: tensor<4xf32>):
    %z = ds.add %x, %x : tensor<4xf32>
    ds.yield %z : tensor<4xf32>
  }
}

// -----

!b = !ds.buffer<tensor<4xf32>, [1], device>
module @e8_carried_elsewhere {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @late_0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {ds.work = #ds.work<update>} : tensor<4xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  func.func @rotated(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    ds.launch @double ins(%m) outs(%l) on compute {ds.work = #ds.work<backward>} : (!b) -> !b
    return
  }
  func.func @flush(%m: !b {ds.state = @m}, %l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<update>} {
    ds.launch @double ins(%l) outs(%m) on compute {ds.work = #ds.work<update>} : (!b) -> !b
    return
  }
  // expected-error@+1 {{'func.func' op updates nothing, but has @late_0, which is carried to the updates of the next step}}
  func.func @evaluate(%l: !b {ds.state = @late_0}) attributes {ds.segment = #ds.segment<evaluation>} {
    ds.launch @double ins(%l) outs(%l) on compute {ds.work = #ds.work<forward>} : (!b) -> !b
    return
  }
  ds.kernel @double inputs 1 buffers [!b, !b] {
  ^bb0(%x: tensor<4xf32>):
    %z = ds.add %x, %x : tensor<4xf32>
    ds.yield %z : tensor<4xf32>
  }
}
