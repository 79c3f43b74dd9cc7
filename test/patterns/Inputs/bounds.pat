/// Rules that fit, and may not be carried out.
set bounds single_shot;

/// A copy moves before who is kept.
pattern early {
  match {
    tensor_scalar $f %t <- %x, $a;
    keep tensor_tensor add _ <- %t, _;
    tensor_copy %y <- %t;
  }
  where {
    same_access(%t),
    f32(%t),
  }
  rewrite at %t {
    tensor_scalar $f %t <- %x, $a;
    tensor_copy %y <- %t;
  }
}

/// Two steps in one.
pattern steps {
  match {
    tensor_scalar $f %t <- %x, $a;
    tensor_scalar $g %y <- %t, $b;
  }
  where {
    sole_reader(%t),
    same_access(%t),
    f32(%t),
  }
  rewrite {
    tensor_scalar $f $g %y <- %x, $a, $b;
  }
}

/// From DRAM to DRAM without a stop.
pattern straight {
  match {
    load %t <- %x;
    save %z <- %t;
  }
  where {
    sole_reader(%t),
    same_access(%t),
  }
  rewrite {
    dma_copy %z <- %x;
  }
}

/// Another engine.
pattern over {
  match {
    keep tensor_copy %y <- _ {engine = act};
  }
  rewrite {
    call set_engine(%y, pool);
  }
}

/// What is computed twice.
pattern twice {
  match {
    keep tensor_tensor $f %t <- %a, %b;
    tensor_tensor $f %y <- %a, %b;
  }
  where {
    same_dtype(%t, %y),
  }
  rewrite {
    tensor_copy %y <- %t;
  }
}

set grow greedy;

/// What it makes fits it again.
pattern grow {
  match {
    tensor_scalar max %y <- %x, 1.0;
  }
  rewrite {
    tensor_scalar max %y <- %x, 1.0;
    tensor_scalar max %y <- %y, 1.0;
  }
}
