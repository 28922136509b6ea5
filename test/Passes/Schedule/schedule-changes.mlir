// RUN: ds-opt %s --ds-schedule-communication --ds-insert-events --ds-verify-scheduled --ds-verify-collectives | FileCheck %s

!part = !ds.buffer<tensor<262144xf32>, [1], device>
!whole = !ds.buffer<tensor<524288xf32>, [1], device>
!home = !ds.buffer<tensor<262144xf32>, [1], host>

// What changes between two micro-steps is another value, and is gathered again: @b changes in each middle one, @c in the
// first, @d before the last one reads it. @d alone stays gathered over the others, and nothing else lies in its place.
// CHECK: gathers = [{function = "first", kept_for_step = ["d"],
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 8>} {
  ds.mesh @mesh axes [dp = 2]
  ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@middle, first 1, count 6, gradients add>,
                       #ds.run<@last, first 7, count 1, gradients add>]
  ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<step>} : tensor<262144xf32>
  ds.state @c role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<step>} : tensor<262144xf32>
  ds.state @d role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<step>} : tensor<262144xf32>
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<524288xf32>
  ds.state @e role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<262144xf32>
  ds.state @h role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<262144xf32>

  // CHECK-LABEL: func.func @first(
  // CHECK-SAME: %[[D:[a-z0-9]+]]: !ds.buffer<tensor<524288xf32>, [1], device> {ds.state = @d.gathered})
  // CHECK-COUNT-3: ds.communicate all_gather
  // CHECK: return
  func.func @first(%b: !part {ds.state = @b}, %c: !part {ds.state = @c}, %d: !part {ds.state = @d}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %fb = ds.alloc communication : !whole
    ds.communicate all_gather ins(%b) outs(%fb) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fb, %x) writes [1] params [] on compute : !whole, !whole
    %fc = ds.alloc communication : !whole
    ds.communicate all_gather ins(%c) outs(%fc) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fc, %x) writes [1] params [] on compute : !whole, !whole
    %fd = ds.alloc communication : !whole
    ds.communicate all_gather ins(%d) outs(%fd) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fd, %x) writes [1] params [] on compute : !whole, !whole
    ds.call fill(%c) writes [0] params [0.0] on compute : !part
    return
  }

  // CHECK-LABEL: func.func @middle(%arg0: {{.*}} {ds.state = @b}, %arg1: {{.*}} {ds.state = @c}, %arg2: {{.*}} {ds.state = @d}
  // CHECK-DAG: ds.communicate all_gather ins(%arg0)
  // CHECK-DAG: ds.communicate all_gather ins(%arg1)
  // CHECK-NOT: ds.communicate
  // CHECK: return
  func.func @middle(%b: !part {ds.state = @b}, %c: !part {ds.state = @c}, %d: !part {ds.state = @d}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %fb = ds.alloc communication : !whole
    ds.communicate all_gather ins(%b) outs(%fb) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fb, %x) writes [1] params [] on compute : !whole, !whole
    %fc = ds.alloc communication : !whole
    ds.communicate all_gather ins(%c) outs(%fc) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fc, %x) writes [1] params [] on compute : !whole, !whole
    %fd = ds.alloc communication : !whole
    ds.communicate all_gather ins(%d) outs(%fd) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fd, %x) writes [1] params [] on compute : !whole, !whole
    ds.call fill(%b) writes [0] params [0.0] on compute : !part
    return
  }

  // CHECK-LABEL: func.func @last(
  // CHECK: ds.call fill
  // CHECK: ds.alloc communication
  // CHECK: ds.communicate all_gather
  func.func @last(%d: !part {ds.state = @d}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.call fill(%d) writes [0] params [0.0] on compute : !part
    %fd = ds.alloc communication : !whole
    ds.communicate all_gather ins(%d) outs(%fd) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fd, %x) writes [1] params [] on compute : !whole, !whole
    return
  }

  // CHECK-LABEL: func.func @evaluate(
  // CHECK-NOT: @d.gathered
  // CHECK: ds.alloc communication
  // CHECK: ds.communicate all_gather
  func.func @evaluate(%b: !part {ds.state = @b}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<evaluation>} {
    %fb = ds.alloc communication : !whole
    ds.communicate all_gather ins(%b) outs(%fb) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fb, %x) writes [1] params [] on compute : !whole, !whole
    return
  }

  // A gather into a state that is no gathered parameter, or into memory that is not for communication, happens where it
  // stands.
  // CHECK-LABEL: func.func @other_places
  // CHECK: ds.call fill
  // CHECK: ds.communicate all_gather ins(%arg0)
  // CHECK: ds.call fill
  // CHECK: ds.communicate all_gather ins(%arg1)
  // CHECK: ds.call copy
  func.func @other_places(%b: !part {ds.state = @b}, %c: !part {ds.state = @c}, %w: !whole {ds.state = @w}, %x: !whole {ds.input = "x"}) {
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.communicate all_gather ins(%b) outs(%w) along dp carries parameter on gather : (!part) -> !whole
    ds.call fill(%x) writes [0] params [1.0] on compute : !whole
    %y = ds.alloc activations : !whole
    ds.communicate all_gather ins(%c) outs(%y) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%y, %x) writes [1] params [] on compute : !whole, !whole
    return
  }

  // A gather comes before what changes its shard, be it a transfer right behind it or one that stands before the command
  // that needs the value. What the shard is then is another value.
  // CHECK-LABEL: func.func @changed_behind(
  // CHECK: ds.communicate all_gather ins(%arg0)
  // CHECK: ds.transfer %arg3 to %arg0
  // CHECK: ds.communicate all_gather ins(%arg1)
  // CHECK: ds.transfer %arg3 to %arg1
  // CHECK: ds.communicate all_gather ins(%arg1)
  // CHECK: return
  func.func @changed_behind(%b: !part {ds.state = @b}, %c: !part {ds.state = @c}, %x: !whole {ds.input = "x"}, %h: !home {ds.state = @h}) {
    %fb = ds.alloc communication : !whole
    ds.communicate all_gather ins(%b) outs(%fb) along dp carries parameter on gather : (!part) -> !whole
    ds.transfer %h to %b on to_device : !home, !part
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    %fc = ds.alloc communication : !whole
    ds.communicate all_gather ins(%c) outs(%fc) along dp carries parameter on gather : (!part) -> !whole
    ds.transfer %h to %c on to_device : !home, !part
    ds.call fill(%x) writes [0] params [1.0] on compute : !whole
    ds.call copy(%fb, %x) writes [1] params [] on compute : !whole, !whole
    ds.call copy(%fc, %x) writes [1] params [] on compute : !whole, !whole
    %gc = ds.alloc communication : !whole
    ds.communicate all_gather ins(%c) outs(%gc) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%gc, %x) writes [1] params [] on compute : !whole, !whole
    return
  }

  // A command that changes the shard needs the gather as those do that read the value: nothing hides it here.
  // CHECK-LABEL: func.func @changed_before_use(
  // CHECK: ds.communicate all_gather ins(%arg0)
  // CHECK: ds.call fill(%arg0)
  // CHECK-COUNT-40: ds.call fill(%arg1)
  // CHECK: ds.call copy
  func.func @changed_before_use(%e: !part {ds.state = @e}, %x: !whole {ds.input = "x"}) {
    %fe = ds.alloc communication : !whole
    ds.communicate all_gather ins(%e) outs(%fe) along dp carries parameter on gather : (!part) -> !whole
    ds.call fill(%e) writes [0] params [0.0] on compute : !part
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call fill(%x) writes [0] params [0.0] on compute : !whole
    ds.call copy(%fe, %x) writes [1] params [] on compute : !whole, !whole
    return
  }
}
