// RUN: ds-opt %s --ds-verify-collectives --split-input-file | FileCheck %s

// What stages send each other is received, over the schedules of both: after all forwards all backwards.
!act = !ds.buffer<tensor<8xf32>, [1], device>
// CHECK-LABEL: func.func @forward0
module {
  ds.mesh @mesh axes [pp = 2, dp = 2] stages pp
  func.func @forward0(%h: !act {ds.input = "h"}) attributes {ds.segment = #ds.segment<forward>} {
    ds.communicate send ins(%h) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
  func.func @backward0(%d: !act {ds.input = "d"}) attributes {ds.segment = #ds.segment<backward, update>} {
    ds.communicate recv ins() outs(%d) along pp number 0 on reduce {peer = 1 : i64} : () -> !act
    return
  }
  func.func @forward1(%h: !act {ds.input = "h1"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    ds.communicate recv ins() outs(%h) along pp number 0 on gather {peer = 0 : i64} : () -> !act
    return
  }
  func.func @backward1(%d: !act {ds.input = "d1"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, backward, update>} {
    ds.communicate send ins(%d) outs() along pp number 0 on reduce {peer = 0 : i64} : (!act) -> ()
    return
  }
}

// -----

// Both stages begin with what they send: messages side by side are one exchange.
!act = !ds.buffer<tensor<8xf32>, [1], device>
// CHECK-LABEL: func.func @sends_first0
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @sends_first0(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}) attributes {ds.segment = #ds.segment<forward, update>} {
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    ds.communicate recv ins() outs(%b) along pp number 1 on gather {peer = 1 : i64} : () -> !act
    return
  }
  func.func @sends_first1(%a: !act {ds.input = "a1"}, %b: !act {ds.input = "b1"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 0 : i64} : (!act) -> ()
    ds.communicate recv ins() outs(%b) along pp number 1 on gather {peer = 0 : i64} : () -> !act
    return
  }
}

// -----

// The schedule says what runs, and in which order: in that of the text stage 0 would wait for a gradient of what it has not
// sent, and what no run names would send to nobody.
!act = !ds.buffer<tensor<8xf32>, [1], device>
// CHECK-LABEL: func.func @stands_first0
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @stands_first0(%d: !act {ds.input = "d"}) attributes {ds.segment = #ds.segment<backward, update>} {
    ds.communicate recv ins() outs(%d) along pp number 0 on reduce {peer = 1 : i64} : () -> !act
    return
  }
  func.func @runs_first0(%h: !act {ds.input = "h"}) attributes {ds.segment = #ds.segment<forward>} {
    ds.communicate send ins(%h) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
  func.func @runs_first1(%h: !act {ds.input = "h1"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    ds.communicate recv ins() outs(%h) along pp number 0 on gather {peer = 0 : i64} : () -> !act
    return
  }
  func.func @runs_never1(%h: !act {ds.input = "h2"}) attributes {ds.segment = #ds.segment<stage 1, chunk 1, forward>} {
    ds.communicate send ins(%h) outs() along pp number 0 on gather {peer = 0 : i64} : (!act) -> ()
    return
  }
  func.func @runs_last1(%d: !act {ds.input = "d1"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, backward, update>} {
    ds.communicate send ins(%d) outs() along pp number 0 on reduce {peer = 0 : i64} : (!act) -> ()
    return
  }
  ds.schedule stage 0 [#ds.run<@runs_first0, first 0, count 1, gradients none>, #ds.run<@stands_first0, first 0, count 1, gradients set>]
  ds.schedule stage 1 [#ds.run<@runs_first1, first 0, count 1, gradients none>, #ds.run<@runs_last1, first 0, count 1, gradients set>]
}
