// RUN: ds-opt %s --ds-verify-scheduled --split-input-file --verify-diagnostics

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>

// E6: gathered in the first micro-step, read in all, gathered anew in evaluation; the last one changes the shard, and
// behind that its backward reads what was gathered before.
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @first(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  return
}
func.func @middle(%g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  return
}
func.func @last(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  ds.call fill(%p) writes [0] params [0.0 : f64] on compute {ds.work = #ds.work<update>} : !part
  ds.call copy(%g, %x) writes [1] params [] on compute {ds.work = #ds.work<backward>} : !whole, !whole
  return
}
func.func @evaluate(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<evaluation>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  return
}

// -----

// expected-error@+1 {{'ds.state' op expects gathered_from to name a state}}
ds.state @e6_no_shard role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>

// -----

!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_never_gathered(%g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  return
}

// -----

!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_written_by_compute(%g: !whole {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.call' op expects only gathers of its shard, in the first segment and in evaluation, to write a value that stays for the step}}
  ds.call fill(%g) writes [0] params [0.0 : f64] on compute : !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_gathered_from_another(%q: !part {ds.state = @q}, %g: !whole {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.communicate' op expects only gathers of its shard, in the first segment and in evaluation, to write}}
  ds.communicate all_gather ins(%q) outs(%g) along dp on gather : (!part) -> !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @first() attributes {ds.segment = #ds.segment<forward, backward>} {
  return
}
func.func @e6_gathered_in_the_middle(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.communicate' op expects only gathers of its shard, in the first segment and in evaluation, to write}}
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @first(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  return
}
// The second run of it would read what the first one's shard was.
func.func @e6_shard_changes_in_the_loop(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  ds.call fill(%p) writes [0] params [0.0 : f64] on compute : !part
  return
}
func.func @last() attributes {ds.segment = #ds.segment<update>} {
  return
}
ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@e6_shard_changes_in_the_loop, first 1, count 2, gradients add>,
                     #ds.run<@last, first 3, count 1, gradients none>]

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @last(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  return
}
func.func @e6_evaluation_gathers_anew(%g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<evaluation>} {
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_update_reads_behind_itself(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  ds.call fill(%p) writes [0] params [0.0 : f64] on compute {ds.work = #ds.work<update>} : !part
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute {ds.work = #ds.work<update>} : !whole, !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_shard_changed_by_backward(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  ds.call fill(%p) writes [0] params [0.0 : f64] on compute {ds.work = #ds.work<backward>} : !part
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute {ds.work = #ds.work<backward>} : !whole, !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_gathered_behind_the_update(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  ds.call fill(%p) writes [0] params [0.0 : f64] on compute {ds.work = #ds.work<update>} : !part
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute {ds.work = #ds.work<backward>} : !whole, !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!whole = !ds.buffer<tensor<4xf32>, [1], device>
ds.mesh @mesh axes [dp = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @update(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<update>} {
  ds.communicate all_gather ins(%p) outs(%g) along dp on gather : (!part) -> !whole
  ds.call fill(%p) writes [0] params [0.0 : f64] on compute {ds.work = #ds.work<update>} : !part
  return
}
func.func @e6_read_in_a_segment_behind(%p: !part {ds.state = @p}, %g: !whole {ds.state = @g}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.call' op expects a value that stays for the step to be gathered before, and its shard to be as it was then}}
  ds.call copy(%g, %x) writes [1] params [] on compute {ds.work = #ds.work<backward>} : !whole, !whole
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>

// E6: a part of what was gathered is copied out of it, also where the shard was loaded to be gathered.
ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_copied(%p: !part {ds.state = @p}, %g: !half {ds.state = @g}, %x: !half {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
  %s = ds.alloc activations : !part
  %f = ds.alloc communication : !whole
  %h = ds.view %f offset 0 shifts [dp.local = 4] : !whole -> !half
  ds.call copy(%p, %s) writes [1] params [] on compute : !part, !part
  ds.communicate all_gather ins(%s) outs(%f) along dp on gather : (!part) -> !whole
  ds.call copy(%h, %g) writes [1] params [] on compute : !half, !half
  ds.call copy(%g, %x) writes [1] params [] on compute : !half, !half
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_copied_of_another(%p: !part {ds.state = @p}, %q: !part {ds.state = @q}, %g: !half {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  %f = ds.alloc communication : !whole
  %h = ds.view %f offset 0 shifts [dp.local = 4] : !whole -> !half
  ds.communicate all_gather ins(%q) outs(%f) along dp on gather : (!part) -> !whole
  // expected-error@+1 {{'ds.call' op expects only gathers of its shard, in the first segment and in evaluation, to write a value that stays for the step}}
  ds.call copy(%h, %g) writes [1] params [] on compute : !half, !half
  return
}

// -----

!part = !ds.buffer<tensor<2xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<4xf32>
func.func @e6_copied_of_more(%p: !part {ds.state = @p}, %g: !half {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward>} {
  %f = ds.alloc communication : !whole
  %h = ds.view %f offset 0 shifts [dp.local = 4] : !whole -> !half
  ds.call fill(%f) writes [0] params [0.0 : f64] on compute : !whole
  ds.communicate all_gather ins(%p) outs(%f) along dp on gather : (!part) -> !whole
  // expected-error@+1 {{'ds.call' op expects only gathers of its shard, in the first segment and in evaluation, to write a value that stays for the step}}
  ds.call copy(%h, %g) writes [1] params [] on compute : !half, !half
  return
}
