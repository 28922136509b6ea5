// RUN: ds-opt %s --ds-verify-collectives --split-input-file --verify-diagnostics

// Nothing of stage 1 takes what stage 0 sends.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_unreceived(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1, which never receives it}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
  func.func @e7_idle(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    return
  }
}

// -----

!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_silent(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    return
  }
  func.func @e7_unsent(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    // expected-error@+1 {{'ds.communicate' op receives 'message' from rank 0, which never sends it}}
    ds.communicate recv ins() outs(%a) along pp number 0 on gather {peer = 0 : i64} : () -> !act
    return
  }
}

// -----

!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_sends_whole(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1, 8 of f32 along pp}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
  func.func @e7_receives_half(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    // expected-note@+1 {{rank 1 receives 'message' from rank 0, 4 of f32 along pp}}
    ds.communicate recv ins() outs(%c) along pp number 0 on gather {peer = 0 : i64} : () -> !half
    return
  }
}

// -----

// Two messages in one order, and in the other.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_one_order(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1, 8 of f32 along pp}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    ds.communicate send ins(%c) outs() along pp number 1 on gather {peer = 1 : i64} : (!half) -> ()
    return
  }
  func.func @e7_other_order(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    // expected-note@+1 {{rank 1 receives 'message' from rank 0, 4 of f32 along pp}}
    ds.communicate recv ins() outs(%c) along pp number 0 on gather {peer = 0 : i64} : () -> !half
    ds.communicate recv ins() outs(%a) along pp number 1 on gather {peer = 0 : i64} : () -> !act
    return
  }
}

// -----

// Each begins with its send, which other commands part from its receive.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_waits0(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1 and never goes on}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    ds.call fill(%c) writes [0] params [0.0 : f64] on compute : !half
    ds.communicate recv ins() outs(%b) along pp number 1 on gather {peer = 1 : i64} : () -> !act
    return
  }
  func.func @e7_waits1(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    // expected-note@+1 {{rank 1 sends 'message' to rank 0 before that}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 0 : i64} : (!act) -> ()
    ds.call fill(%c) writes [0] params [0.0 : f64] on compute : !half
    ds.communicate recv ins() outs(%b) along pp number 1 on gather {peer = 0 : i64} : () -> !act
    return
  }
}

// -----

// On another stream than the one that it is sent on.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_gathers(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1 and never goes on}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
  func.func @e7_reduces(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    // expected-note@+1 {{rank 1 receives 'message' from rank 0 before that}}
    ds.communicate recv ins() outs(%a) along pp number 0 on reduce {peer = 0 : i64} : () -> !act
    return
  }
}

// -----

!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_itself(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 0, which is itself}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 0 : i64} : (!act) -> ()
    return
  }
  func.func @e7_other(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
    return
  }
}

// -----

// All ranks along dp run one text: position 1 would send to itself.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [dp = 2]
  func.func @e7_within_a_stage(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward, update>} {
    // expected-error@+1 {{'ds.communicate' op expects axes of the mesh's stages, for ranks of one stage run one text, but got dp}}
    ds.communicate send ins(%a) outs() along dp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
}

// -----

!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_no_segment(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {} {
    // expected-error@+1 {{'ds.communicate' op expects to be in a segment, for of others nobody knows when they run}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
}

// -----

!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  // expected-error@+1 {{'func.func' op expects a stage below 2, but is of stage 2}}
  func.func @e7_no_such_stage(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 2, chunk 0, forward, update>} {
    return
  }
}

// -----

// A schedule of one forward and one backward, whose messages stand at the ends of segments: stage 1 waits in its first
// backward, stage 0 in its second forward.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @e7_forward0(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<forward>} {
    // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1 and never goes on}}
    ds.communicate send ins(%a) outs() along pp number 0 on gather {peer = 1 : i64} : (!act) -> ()
    return
  }
  func.func @e7_backward0(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<backward>} {
    ds.communicate recv ins() outs(%b) along pp number 0 on gather {peer = 1 : i64} : () -> !act
    return
  }
  func.func @e7_forward1(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    ds.communicate recv ins() outs(%a) along pp number 0 on gather {peer = 0 : i64} : () -> !act
    return
  }
  func.func @e7_backward1(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, backward>} {
    // expected-note@+1 {{rank 1 sends 'message' to rank 0 before that}}
    ds.communicate send ins(%b) outs() along pp number 0 on gather {peer = 0 : i64} : (!act) -> ()
    return
  }
  func.func @e7_update0(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<update>} {
    return
  }
  func.func @e7_update1(%a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}, %c: !half {ds.input = "c"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, update>} {
    return
  }
  ds.schedule stage 0 [#ds.run<@e7_forward0, first 0, count 2, gradients none>, #ds.run<@e7_backward0, first 0, count 1, gradients set>, #ds.run<@e7_backward0, first 1, count 1, gradients add>, #ds.run<@e7_update0, first 0, count 1, gradients none>]
  ds.schedule stage 1 [#ds.run<@e7_forward1, first 0, count 1, gradients none>, #ds.run<@e7_backward1, first 0, count 1, gradients set>, #ds.run<@e7_forward1, first 1, count 1, gradients none>, #ds.run<@e7_backward1, first 1, count 1, gradients add>, #ds.run<@e7_update1, first 0, count 1, gradients none>]
}
