set fuse single_shot;

option steps = true;

/// Two scalar steps in one.
pattern two_steps (option steps) {
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
