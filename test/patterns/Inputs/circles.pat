set circles greedy;

rewrite to_add : (subtract ?x (splat 2.0)) => (add ?x (splat -2.0));

rewrite to_subtract : (add ?x (splat -2.0)) => (subtract ?x (splat 2.0));
