set bad greedy;

rewrite typo : (multply ?x (splat 1.0)) => ?x;

pattern lost {
  match {
    activation exp %t <- %x;
    tensor_copy %y <- %t;
  }
  rewrite {
    activation exp %y <- %x;
  }
}

rewrite one : (max ?x ?y) => (min ?x ?y);

rewrite other : (max ?x ?y) => (add ?x ?y);
