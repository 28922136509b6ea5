// RUN: ds-opt %s --ds-verify-stages --split-input-file | FileCheck %s

// A model of one piece has nothing to agree on.
// CHECK-LABEL: func.func @alone
func.func @alone() attributes {ds.segment = #ds.segment<forward, update>} {
  return
}

// -----

// In any order, with a table that both have and an input that both read; what is sent is received. The axis of stages has any name.
!act = !ds.buffer<tensor<8xf32>, [1], device>
module {
  // CHECK: func.func @last
  module {
    ds.mesh @mesh axes [depth = 2, pp = 2] samples pp stages depth
    ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
    func.func @last(%x: !act {ds.input = "x"}, %h: !act {ds.input = "h"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      ds.communicate recv ins() outs(%h) along depth number 0 on transfer {peer = 0 : i64} : () -> !act
      return
    }
  }
  // CHECK: func.func @first
  module {
    ds.mesh @mesh axes [depth = 2, pp = 2] samples pp stages depth
    ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
    func.func @first(%x: !act {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, update>} {
      ds.communicate send ins(%x) outs() along depth number 0 on transfer {peer = 1 : i64} : (!act) -> ()
      return
    }
  }
}

// -----

// Two begin with what they send: side by side a send and a receive of other memory are one exchange.
!act = !ds.buffer<tensor<8xf32>, [1], device>
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    // CHECK: func.func @exchanges0
    func.func @exchanges0(%x: !act {ds.input = "x"}, %y: !act {ds.input = "y"}) attributes {ds.segment = #ds.segment<forward, update>} {
      ds.communicate send ins(%x) outs() along pp number 0 on transfer {peer = 1 : i64} : (!act) -> ()
      ds.communicate recv ins() outs(%y) along pp number 1 on transfer {peer = 1 : i64} : () -> !act
      return
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @exchanges1(%x: !act {ds.input = "x"}, %y: !act {ds.input = "y"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      ds.communicate send ins(%x) outs() along pp number 0 on transfer {peer = 0 : i64} : (!act) -> ()
      ds.communicate recv ins() outs(%y) along pp number 1 on transfer {peer = 0 : i64} : () -> !act
      return
    }
  }
}
