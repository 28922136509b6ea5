// RUN: ds-opt %s --split-input-file --ds-pipeline-segments --verify-diagnostics

// What is sent is made of a gradient: forward cannot be over before backward begins.
!h = !ds.buffer<tensor<8xf32>, [1], device>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%x: !h {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %d = ds.alloc communication : !h
    ds.communicate recv ins() outs(%d) along pp carries transfer number 0 on transfer {ds.work = #ds.work<backward>, peer = 1 : i64} : () -> !h
    // expected-error@below {{expects a message of forward or backward to wait for nothing that is done after it}}
    ds.communicate send ins(%d) outs() along pp carries transfer number 1 on transfer {ds.work = #ds.work<forward>, peer = 1 : i64} : (!h) -> ()
    return
  }
}

// -----

// Backward reads a counter as it was before forward has moved it on, and after.
!n = !ds.buffer<tensor<i64>, [], device>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.state @n role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<i64>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%n: !n {ds.state = @n}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !n
    ds.call copy(%n, %a) writes [1] params [] on compute {ds.work = #ds.work<backward>} : !n, !n
    %b = ds.alloc activations : !n
    // expected-error@below {{expects to change a state before, or after, all that is read of it behind forward}}
    ds.call copy(%b, %n) writes [1] params [] on compute {ds.work = #ds.work<forward>} : !n, !n
    ds.call copy(%n, %a) writes [1] params [] on compute {ds.work = #ds.work<backward>} : !n, !n
    return
  }
}
