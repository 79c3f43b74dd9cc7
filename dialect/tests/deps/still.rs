//! Loops whose accesses stand still have exactly the edges of the definition.

use crate::support::{Edges, Rng, by_definition, expanded, function, fuzz, read, still_program};
use bir_dialect::analysis::deps::{Graph, Kinds};
use bir_dialect::bir::program::DepKind::{self, Anti, Flow, Output};

const MEMORY: &[DepKind] = &[Flow, Anti, Output];

#[test]
fn loops_whose_accesses_stand_still_are_exact() {
    let mut rng = Rng(0x5eed_0021);
    let mut found = 0;
    for round in 0..fuzz(1500) {
        let program = still_program(&mut rng, 24);
        let (ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
        let mut got = expanded(&ir, &graph);
        // The register that decides, read by branches.
        got.retain(|&(_, from, _)| from != 0);
        let want = by_definition(&program);
        let extra: Vec<_> = got.difference(&want).collect();
        let missing: Vec<_> = want.difference(&got).collect();
        assert!(
            got == want,
            "round {round}: missing {missing:?}, extra {extra:?}\n{}",
            program.text
        );
        found += got.len();
    }
    println!("{found} edges");
    assert!(found > 5_000, "{found}");
}

fn edges(body: &str) -> Edges {
    let (ir, func) = function(body);
    expanded(&ir, &Graph::build(&ir, func, Kinds::of(MEMORY)))
}

/// What is read in a loop was partly overwritten there, just before.
#[test]
fn a_read_covered_in_part_sees_the_rest_from_outside() {
    let body = "
        %t = alloc sbuf<4x16xf32>
        %u = alloc sbuf<4x10xf32>
        memset %t[:, 0:8] <- 1.0
        memset %t[:, 8:16] <- 1.0
        loop %i = 0 to 4 {
          memset %t[:, 2:12] <- 2.0
          tensor_copy %u <- %t[:, 4:14]
        }";
    let found: Vec<_> = edges(body)
        .into_iter()
        .filter(|edge| edge.0 == Flow)
        .collect();
    assert_eq!(found, [(Flow, 1, 3), (Flow, 2, 3)]);
}

/// What every way through a body overwrites is gone behind the loop.
#[test]
fn bodies_of_several_blocks_overwrite() {
    let loops = |body: &str| {
        format!(
            "%u = alloc sbuf<4x16xf32>\n%y = alloc sbuf<4x16xf32>\n%r = register_move <- 1\n\
             memset %u <- 1.0\nloop %i = 0 to 2 {{\n{body}\n}}\ntensor_copy %y <- %u"
        )
    };
    let into_copy = |body: &str, copy: u32| -> Vec<u32> {
        let found = edges(&loops(body));
        let flow = found
            .iter()
            .filter(|edge| edge.0 == Flow && edge.2 == copy && edge.1 > 0);
        flow.map(|edge| edge.1).collect()
    };
    let chain = "memset %u <- 2.0\nbr ^c\n^c:\nmemset %u <- 3.0";
    assert_eq!(into_copy(chain, 5), [4]);
    let diamond = "cond_br %r, ^a, ^b\n^a:\nmemset %u <- 2.0\nbr ^c\n^b:\n\
                   memset %u <- 3.0\nbr ^c\n^c:\nnop";
    assert_eq!(into_copy(diamond, 8), [3, 5]);
    let one_side = "cond_br %r, ^a, ^c\n^a:\nmemset %u <- 2.0\nbr ^c\n^c:\nnop";
    assert_eq!(into_copy(one_side, 6), [1, 3]);
}
