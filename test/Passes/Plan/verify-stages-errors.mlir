// RUN: ds-opt %s --ds-verify-stages --split-input-file --verify-diagnostics

// (E1) Beside stages there is nothing.
module {
  // expected-error@+1 {{'ds.mesh' op expects to be in a stage: a module of stages has nothing beside them}}
  ds.mesh @mesh axes [pp = 1] stages pp
  module {
    ds.mesh @mesh axes [pp = 1] stages pp
    func.func @step() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
}

// -----

// (E2) A stage does something.
module {
  // expected-error@+1 {{'builtin.module' op expects segments of a stage, but has none}}
  module {
    ds.mesh @mesh axes [pp = 1] stages pp
    func.func @forward() {
      return
    }
  }
}

// -----

// (E2) Of one stage alone.
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e2_first() attributes {ds.segment = #ds.segment<forward>} {
      return
    }
    // expected-error@+1 {{'func.func' op expects a segment of stage 0, as the others of its module are, but is of stage 1}}
    func.func @e2_other() attributes {ds.segment = #ds.segment<stage 1, chunk 0, update>} {
      return
    }
  }
}

// -----

// (E3) Every stage says where its ranks are.
module {
  // expected-error@+2 {{'builtin.module' op expects a mesh, but declares none}}
  // expected-note@+1 {{all stages declare the same, as ds.mesh @mesh axes [pp = 2] stages pp}}
  module {
    func.func @e3_step() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
}

// -----

// (E3) Of the same axes for the same ends: a set that differs is another mesh.
module {
  module {
    // expected-note@+1 {{stage 0 declares it here}}
    ds.mesh @mesh axes [pp = 2, dp = 2] samples dp stages pp
    func.func @e3_step() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
  module {
    // expected-error@+1 {{'ds.mesh' op expects the mesh of all stages, [pp = 2, dp = 2] samples dp stages pp, but got [pp = 2, dp = 2] stages pp}}
    ds.mesh @mesh axes [pp = 2, dp = 2] stages pp
    func.func @e3_step() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E4) A number twice.
module {
  // expected-note@+1 {{it is this one already}}
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e4_one() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
  // expected-error@+1 {{'builtin.module' op expects each stage once, but stage 1 is there twice}}
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e4_same() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E4) One is missing, in the middle.
// expected-error@+1 {{'builtin.module' op expects 3 stages, the ranks of the mesh along pp, but stage 1 is missing}}
module {
  module {
    ds.mesh @mesh axes [pp = 3] stages pp
    func.func @e4_last() attributes {ds.segment = #ds.segment<stage 2, chunk 0, forward, update>} {
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 3] stages pp
    func.func @e4_first() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
}

// -----

// (E4) One too many, for a mesh whose axis pp is not for stages.
module {
  module {
    ds.mesh @mesh axes [pp = 2]
    func.func @e4_first() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
  // expected-error@+1 {{'builtin.module' op expects a stage below 1, the ranks of its mesh along no axis, but is stage 1}}
  module {
    ds.mesh @mesh axes [pp = 2]
    func.func @e4_more() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E5) A tied table of two sizes.
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // expected-note@+1 {{another stage has it here}}
    ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
    func.func @e5_step() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // expected-error@+1 {{'ds.state' op expects state 'table' to be the same on all stages, but they differ in type}}
    ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<9xf32>
    func.func @e5_step() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E5) Copies that start with other values.
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // expected-note@+1 {{another stage has it here}}
    ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
    func.func @e5_step() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // expected-error@+1 {{'ds.state' op expects state 'table' to be the same on all stages, but they differ in initial value or training}}
    ds.state @table role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<8xf32>
    func.func @e5_step() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E5) One input, on tensors as on buffers.
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // expected-note@+1 {{another stage has it here}}
    func.func @e5_step(%ids: tensor<4x8xi64> {ds.input = "ids"}) attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // expected-error@+1 {{'func.func' op expects input 'ids' to be the same on all stages, but they differ in type}}
    func.func @e5_step(%ids: tensor<4x9xi64> {ds.input = "ids"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E6) Held-out data would stop at stage 1.
module {
  // expected-note@+1 {{held-out data go through all stages or none}}
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e6_step() attributes {ds.segment = #ds.segment<forward, update>} {
      return
    }
    func.func @e6_evaluate() attributes {ds.segment = #ds.segment<evaluation>} {
      return
    }
  }
  // expected-error@+1 {{'builtin.module' op expects an evaluation, as stage 0 has one, but has none}}
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e6_step() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E7) Nothing of stage 1 takes what stage 0 sends.
!act = !ds.buffer<tensor<8xf32>, [1], device>
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e7_unreceived(%x: !act {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, update>} {
      // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1, which never receives it}}
      ds.communicate send ins(%x) outs() along pp number 0 on transfer {peer = 1 : i64} : (!act) -> ()
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e7_idle(%x: !act {ds.input = "x"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      return
    }
  }
}

// -----

// (E7) Other bytes than those that are sent.
!act = !ds.buffer<tensor<8xf32>, [1], device>
!half = !ds.buffer<tensor<4xf32>, [1], device>
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e7_whole(%x: !act {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, update>} {
      // expected-error@+1 {{'ds.communicate' op sends 'message' to rank 1, 8 of f32 along pp}}
      ds.communicate send ins(%x) outs() along pp number 0 on transfer {peer = 1 : i64} : (!act) -> ()
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e7_half(%y: !half {ds.input = "y"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      // expected-note@+1 {{rank 1 receives 'message' from rank 0, 4 of f32 along pp}}
      ds.communicate recv ins() outs(%y) along pp number 0 on transfer {peer = 0 : i64} : () -> !half
      return
    }
  }
}

// -----

// (E7) Both begin with a receive.
!act = !ds.buffer<tensor<8xf32>, [1], device>
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e7_waits0(%x: !act {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, update>} {
      // expected-error@+1 {{'ds.communicate' op receives 'message' from rank 1 and never goes on}}
      ds.communicate recv ins() outs(%x) along pp number 0 on transfer {peer = 1 : i64} : () -> !act
      ds.communicate send ins(%x) outs() along pp number 1 on transfer {peer = 1 : i64} : (!act) -> ()
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @e7_waits1(%x: !act {ds.input = "x"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      // expected-note@+1 {{rank 1 receives 'message' from rank 0 before that}}
      ds.communicate recv ins() outs(%x) along pp number 0 on transfer {peer = 0 : i64} : () -> !act
      ds.communicate send ins(%x) outs() along pp number 1 on transfer {peer = 0 : i64} : (!act) -> ()
      return
    }
  }
}
