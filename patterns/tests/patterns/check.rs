//! Every static error of the language, by its message.

use crate::common::findings;
use bir_dialect::text::render::ReportStyle;
use bir_patterns::Library;
use bir_patterns::library::report;

/// A set of one pattern.
fn pattern(text: &str) -> Vec<String> {
    findings(&format!("set s greedy;\npattern p {{ {text} }}"))
}

fn rule(text: &str) -> Vec<String> {
    findings(&format!("set s greedy;\nrewrite r : {text};"))
}

#[track_caller]
fn says(found: &[String], wanted: &str) {
    assert!(
        found.iter().any(|message| message == wanted),
        "wanted: {wanted}\nfound: {found:#?}"
    );
}

const COPY: &str = "match { tensor_copy %y <- %x; } rewrite { generic_copy %y <- %x; }";

#[test]
fn a_good_pattern_has_no_findings() {
    assert!(pattern(COPY).is_empty(), "{:?}", pattern(COPY));
}

#[test]
fn shipped_sets_have_no_findings() {
    let mut library = Library::empty();
    for (name, text) in bir_patterns::SHIPPED {
        let diags = library.add(name, text);
        assert!(
            diags.is_empty(),
            "{}",
            report(name, text, &diags, ReportStyle::Plain)
        );
    }
}

#[test]
fn unknown_names_are_told_with_the_nearest() {
    says(
        &pattern("match { tensor_cpy %y <- %x; } rewrite { tensor_copy %y <- %x; }"),
        "unknown instruction `tensor_cpy`",
    );
    says(
        &pattern("match { tensor_scalar ad %y <- %x, 1.0; } rewrite { tensor_copy %y <- %x; }"),
        "attribute `op0` of `tensor_scalar` has no word `ad`",
    );
    says(
        &pattern("match { tensor_copy %y <- %x {sped = 1}; } rewrite { tensor_copy %y <- %x; }"),
        "unknown attribute `sped` of `tensor_copy`",
    );
    says(
        &pattern("match { tensor_copy %y <- from %x; } rewrite { tensor_copy %y <- %x; }"),
        "`tensor_copy` has no operand or word `from` here",
    );
    says(
        &pattern(
            "match { tensor_copy %y <- %x; } where { flot(%x) } rewrite { generic_copy %y <- %x; }",
        ),
        "unknown constraint `flot`",
    );
    says(
        &pattern("match { keep tensor_copy %y <- %x; } rewrite { call set_engin(%y, pool); }"),
        "unknown registered rewrite `set_engin`",
    );
    says(&rule("(ad ?x (splat 1.0)) => ?x"), "unknown operation `ad`");
    let mut library = bir_patterns::Library::empty();
    let short = library.add("s.pat", "set s;\nrewrite a : (mul ?x (splat 1.0)) => ?x;");
    let help = short.iter().next().and_then(|one| one.help.clone());
    assert_eq!(help.as_deref(), Some("did you mean `multiply`?"));
    says(
        &findings("set s greddy;"),
        "unknown driver `greddy`; expected `single_shot` or `greedy`",
    );
    says(
        &findings("set s;\nimport identitie;"),
        "unknown set `identitie`; a set is imported after it is defined",
    );
    says(
        &findings(&format!("set s;\npattern p (benfit 2) {{ {COPY} }}")),
        "unknown setting `benfit`",
    );
    says(
        &findings(&format!("set s;\npattern p (option fast) {{ {COPY} }}")),
        "set `s` has no option `fast`",
    );
    let mut library = Library::shipped();
    let text =
        "set s;\npattern p { match { tensor_cpy %y <- %x; } rewrite { tensor_copy %y <- %x; } }";
    let diags = library.add("my.pat", text);
    let shown = report("my.pat", text, &diags, ReportStyle::Plain);
    for part in ["my.pat:2:21", "did you mean `tensor_copy`?"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn variables_are_bound_and_used() {
    says(
        &pattern("match { tensor_copy %y <- %x; } rewrite { tensor_copy %y <- %z; }"),
        "`%z` is not bound by what is matched",
    );
    says(
        &pattern(
            "match { tensor_scalar $f %y <- %x, $c; } rewrite { tensor_scalar $g %y <- %x, $c; }",
        ),
        "`$g` is not bound by what is matched",
    );
    says(
        &pattern("match { tensor_tensor add %y <- %x, %z; } rewrite { tensor_copy %y <- %x; }"),
        "`%z` is bound and never used",
    );
    says(
        &pattern("match { tensor_scalar $f %y <- %x, 1.0; } rewrite { tensor_copy %y <- %x; }"),
        "`$f` is bound and never used",
    );
    says(
        &rule("(add ?x (splat 1.0)) => ?y"),
        "`?y` is not bound by what is matched",
    );
}

#[test]
fn types_have_to_agree() {
    says(
        &pattern(
            "match { activation $f %t <- %x; tensor_scalar $f %y <- %t, 1.0; } where { sole_reader(%t) } rewrite { tensor_copy %y <- %x; }",
        ),
        "`$f` is a word of `alu_op` here, and a word of `activation_func` where it is bound",
    );
    says(
        &pattern("match { tensor_copy %y <- 1.0; } rewrite { generic_copy %y <- %y; }"),
        "operand `src` of `tensor_copy` is always a location, found the number `1.0`",
    );
    says(
        &pattern(
            "match { tensor_scalar add %y <- %x, $c; } where { full($c) } rewrite { tensor_copy %y <- %x; }",
        ),
        "`full` expects an operand `%x` here",
    );
    says(
        &pattern(
            "match { tensor_copy %y <- %x; } where { uniform(%x) } rewrite { generic_copy %y <- %x; }",
        ),
        "`uniform` is given 1 arguments, expected 2: an operand `%x`, a number",
    );
    says(
        &pattern(
            "match { tensor_copy %y <- %x; } where { engine(%x, fast) } rewrite { generic_copy %y <- %x; }",
        ),
        "`engine` expects `pe`, `act`, `dve`, `pool`, `sp`, `dma` here",
    );
    says(
        &pattern(
            "match { tensor_reduce add %y <- %x {negate = 3, axes = [1]}; } rewrite { tensor_copy %y <- %x; }",
        ),
        "attribute `negate` of `tensor_reduce` is a flag, found a number",
    );
}

#[test]
fn what_can_never_match_is_an_error() {
    says(
        &pattern("match { tensor_scalar %y <- %x; } rewrite { tensor_copy %y <- %x; }"),
        "can never match: `tensor_scalar` always has attribute `op0`, which the pattern does not mention",
    );
    says(
        &pattern("match { tensor_copy %y; } rewrite { memset %y <- 1.0; }"),
        "can never match: `tensor_copy` always has operand `src`, which the pattern does not mention",
    );
    says(
        &pattern(
            "match { tensor_copy %y <- %x; } where { f32(%x), i8(%x) } rewrite { generic_copy %y <- %x; }",
        ),
        "can never match: no dtype is left for `%x`",
    );
    says(
        &pattern(
            "match { keep load %t <- %x; matmult %y <- stationary %t, moving %x; } rewrite { matmult %y <- stationary %t, moving %t; }",
        ),
        "can never match: no memory space is left for `%x`",
    );
    says(
        &pattern("match { tensor_scalar add %y <- %x, 0x; } rewrite { tensor_copy %y <- %x; }"),
        "expected an operand, found `0x`",
    );
    says(
        &pattern(
            "match { range_select less less %y <- %x, %a, %b {range_start = -4}; } rewrite { tensor_copy %y <- %x; }",
        ),
        "can never match: attribute `range_start` of `range_select` is an integer from 0 to 16777215, found `-4`",
    );
}

#[test]
fn results_are_written_and_reads_have_writers() {
    says(
        &pattern(
            "match { activation exp %t <- %x; tensor_copy %y <- %t; } rewrite { activation exp %y <- %x; }",
        ),
        "pattern `p` replaces `activation`, and its rewrite leaves `%t` unwritten",
    );
    says(
        &pattern("match { tensor_copy _ <- %x; } where { full(%x) } rewrite { memset %x <- 0.0; }"),
        "pattern `p` replaces `tensor_copy`, and its rewrite leaves `_` unwritten",
    );
    says(
        &pattern(
            "match { activation exp %t <- %x; tensor_copy %y <- %t; } where { sole_reader(%t), full(%x) } rewrite { tensor_copy %y <- %t; }",
        ),
        "`%t` is read before anything writes it: the instruction that did is replaced",
    );
    says(
        &pattern(
            "match { tensor_copy %y <- %t; keep memset %t <- 1.0; } rewrite { memset %y <- 1.0; }",
        ),
        "`%t` is read before it is written; instructions stand in program order",
    );
    says(
        &pattern("match { memset %t <- 1.0; memset %t <- 2.0; } rewrite { memset %t <- 2.0; }"),
        "`%t` is written twice; give each result its own name",
    );
    says(
        &pattern(
            "match { memset %a <- 1.0; memset %b <- 2.0; } rewrite { memset %a <- 1.0; memset %b <- 2.0; }",
        ),
        "`memset` shares no operand with the other instructions, so nothing leads to it",
    );
    says(
        &pattern("match { keep memset %a <- 1.0; } rewrite { memset %a <- 1.0; }"),
        "all instructions are kept: a rewrite replaces at least one",
    );
    says(
        &pattern("match { tensor_copy %y <- %x; } rewrite at %z { generic_copy %y <- %x; }"),
        "`%z` is not bound by what is matched",
    );
    says(
        &pattern(
            "match { keep memset %t <- 1.0; tensor_copy %y <- %t; } rewrite at %t { memset %y <- 1.0; }",
        ),
        "the instruction of `%t` is kept, so its place is taken",
    );
    says(
        &pattern("match { tensor_copy %y <- %x; } rewrite { activation %y <- %x; }"),
        "`activation` needs attribute `func`",
    );
    says(
        &pattern("match { tensor_copy %y <- %x; } rewrite { tensor_tensor add %y <- %x; }"),
        "`tensor_tensor` needs operand `rhs`",
    );
}

#[test]
fn halves_keep_to_what_is_theirs() {
    says(
        &pattern("match { tensor_copy %y <- %x; } rewrite { tensor_copy %y <- _; }"),
        "`_` stands for anything; a rewrite needs something",
    );
    says(
        &pattern("match { tensor_copy %y <- %x; } rewrite { keep tensor_copy %y <- %x; }"),
        "`keep` and `..` belong to what is matched, not to what is made",
    );
    says(
        &pattern(
            "match { tensor_scalar add %y <- %x, ($a + 1); } rewrite { tensor_copy %y <- %x; }",
        ),
        "arithmetic belongs to the rewrite; compare numbers in `where`",
    );
    says(
        &pattern(
            "match { tensor_copy %y <- %x; } rewrite { tensor_scalar add|max %y <- %x, 1.0; }",
        ),
        "a rewrite needs one word, found a choice",
    );
    says(
        &pattern("match { tensor_copy %y <- %x {wait = 3}; } rewrite { generic_copy %y <- %x; }"),
        "`wait` belongs to the instruction, not to the pattern: the rewriter hands it on",
    );
    says(
        &pattern("match { tensor_copy %y <- %x?; } rewrite { generic_copy %y <- %x; }"),
        "operand `src` of `tensor_copy` is never absent; `?` is for optional ones",
    );
    says(
        &pattern("match { tensor_copy %y <- %x, %z; } rewrite { generic_copy %y <- %x; }"),
        "`tensor_copy` takes 1 operands behind `<-`, found one more",
    );
    says(
        &pattern(
            "match { tensor_scalar_ptr add %y <- %x, %c, offset %r; } rewrite { generic_copy %y <- %x; }",
        ),
        "operand `offset` of `tensor_scalar_ptr` is a register; patterns match memory and literals",
    );
    says(
        &rule("?x => ?x"),
        "left side of `r`: a bare variable matches everything",
    );
    says(&rule("(add ?x) => ?x"), "`add` takes 2 operands, found 1");
    says(
        &rule("(add (splat 1.0) (splat 2.0)) => (splat 3.0)"),
        "`add` of constants alone is a constant",
    );
    says(
        &rule("(add ?x ?y) => (add (add ?x ?y) ?y)"),
        "the right side is one instruction; expected a variable, a constant, or one operation on them",
    );
}

#[test]
fn rules_do_not_stand_in_each_others_way() {
    let two =
        |a: &str, b: &str| findings(&format!("set s greedy;\nrewrite a {a};\nrewrite b {b};"));
    says(
        &two(
            ": (add ?x ?y) => (subtract ?x ?y)",
            ": (add ?x ?y) => (max ?x ?y)",
        ),
        "rules `a` and `b` both fit some `tensor_tensor`, and neither has the greater benefit",
    );
    says(
        &two(
            ": (add ?x ?y) => (subtract ?x ?y)",
            ": (add ?x ?x) => (max ?x ?x)",
        ),
        "rules `a` and `b` both fit some `tensor_tensor`, and neither has the greater benefit",
    );
    // A literal, a word, a dtype tell rules apart; a benefit decides.
    assert!(
        two(
            ": (add ?x (splat 1.0)) => ?x",
            ": (add ?x (splat 2.0)) => ?x"
        )
        .is_empty()
    );
    assert!(
        two(
            ": (add ?x ?y) => (subtract ?x ?y)",
            ": (max ?x ?y) => (subtract ?x ?y)"
        )
        .is_empty()
    );
    assert!(
        two(
            ": (add ?x ?y) => (subtract ?x ?y) where f32(?x)",
            ": (multiply ?x ?y) => (subtract ?x ?y) where bf16(?x)"
        )
        .is_empty()
    );
    assert!(
        two(
            ": (subtract ?x ?y) => (max ?x ?y) where f32(?x)",
            ": (subtract ?x ?y) => (min ?x ?y) where bf16(?x)"
        )
        .is_empty()
    );
    assert!(
        two(
            "(benefit 2) : (add ?x ?x) => (max ?x ?x)",
            ": (add ?x ?y) => (max ?x ?y)"
        )
        .is_empty()
    );
    says(
        &two(
            "(benefit 2) : (add ?x ?y) => (subtract ?x ?y)",
            ": (add ?x ?x) => (max ?x ?x)",
        ),
        "rule `b` never fires: `a`, of benefit 2, matches all it matches",
    );
    let single = findings(
        "set s single_shot;\nrewrite a : (add ?x ?y) => (max ?x ?y);\nrewrite b : (add ?x ?x) => (min ?x ?x);",
    );
    says(
        &single,
        "rule `b` never fires: `a`, stands before it, matches all it matches",
    );
    let exempt = findings(
        "set s single_shot;\nrewrite b : (add ?x ?x) => (min ?x ?x);\nrewrite a : (add ?x ?y) => (max ?x ?y);",
    );
    assert!(exempt.is_empty(), "{exempt:?}");
}

#[test]
fn sets_and_names_are_defined_once() {
    says(&findings("set s;\nset s;"), "set `s` is defined twice");
    says(
        &findings("set identities;"),
        "set `identities` is defined in another file already",
    );
    says(
        &findings("rewrite r : (add ?x ?y) => ?x;"),
        "there is no set yet for this to belong to",
    );
    says(
        &findings("set s;\noption o = true;\noption o = false;"),
        "set `s` has an option `o` already",
    );
    says(
        &findings(
            "set s;\nrewrite r : (add ?x (splat 1.0)) => ?x;\nrewrite r : (add ?x (splat 2.0)) => ?x;",
        ),
        "rule `r` is defined twice in set `s`",
    );
    says(
        &findings("set s;\nimport identities;\nrewrite multiply_one : (add ?x (splat 1.0)) => ?x;"),
        "rule `multiply_one` is defined twice in set `s`",
    );
    says(
        &findings(&format!("set s;\npattern p (benefit 0) {{ {COPY} }}")),
        "`benefit` is a number from 1 to 1000, found `0`",
    );
}

#[test]
fn syntax_errors_say_what_was_expected() {
    let cut = findings("set s");
    assert!(
        cut[0].contains("`;`") && cut[0].ends_with("found the end of the item"),
        "{cut:?}"
    );
    says(
        &findings("set s;\npattern p { match { tensor_copy %y <- %x; }"),
        "`{` is never closed",
    );
    says(&findings("set s;\n)"), "`)` closes nothing");
    says(
        &findings("set s;\nrewrite r \"law : (add ?x ?y) => ?x;\n"),
        "a text in quotes ends on its line; expected `\"`",
    );
    says(
        &findings("set s;\npattern p {\n /// no\n match { } rewrite { } }"),
        "documentation `///` stands before an item, not in it",
    );
    says(
        &findings(&format!("set s;\nrewrite r : {} => ?x;", "(".repeat(100))),
        "brackets nest deeper than 64",
    );
    // One wrong item hides no other.
    let found = findings(
        "set s;\nrewrite a : (ad ?x ?y) => ?x;\npattern b {\n  match {\nrewrite c : (sub ?x ?y) => ?x;\n",
    );
    says(&found, "unknown operation `ad`");
    says(&found, "unknown operation `sub`");
}

#[test]
fn what_is_named_in_a_law_is_computed() {
    says(
        &findings("set s greedy;\nrewrite r : (add ?x ?c:(splat 1.0)) => ?x;"),
        "`?c` names a constant",
    );
    let fine = "set s greedy;\nrewrite r : ?y:(add ?t:(multiply ?x (splat 2.0)) (splat 1.0)) => (add ?t (splat 1.0)) where bf16(?y), f32(?t);";
    assert_eq!(findings(fine), Vec::<String>::new());
}

#[test]
fn files_that_would_take_long_are_refused() {
    let long = format!(
        "set s;\npattern p {{ match {{ tensor_scalar add %y <- %x, $a; }} rewrite {{ tensor_scalar add %y <- %x, ({} $a); }} }}",
        "$a + ".repeat(30_000)
    );
    let [found] = &findings(&long)[..] else {
        panic!()
    };
    assert!(
        found.starts_with("an item has 65536 bytes at most, this has "),
        "{found}"
    );
    let chain: String = (1..=65)
        .map(|at| format!("tensor_copy %a{at} <- %a{};", at - 1))
        .collect();
    says(
        &pattern(&format!(
            "match {{ {chain} }} rewrite {{ tensor_copy %a65 <- %a0; }}"
        )),
        "a pattern matches 64 instructions at most",
    );
    let equal: String = (0..300)
        .map(|at| {
            format!("pattern p{at} {{ match {{ tensor_scalar add %y <- %x, 1.0; }} rewrite {{ tensor_copy %y <- %x; }} }}\n")
        })
        .collect();
    // Each is told of once.
    assert_eq!(findings(&format!("set s greedy;\n{equal}")).len(), 299);
}

#[test]
fn characters_nobody_sees_are_told_by_number() {
    let [found] = &findings("\u{feff}set s;")[..] else {
        panic!()
    };
    assert!(found.ends_with("found U+FEFF"), "{found}");
}

#[test]
fn one_mistake_is_told_once() {
    let found = pattern(
        "match { tensor_scallar $f %y <- %x, $a {engine = $e}; tensor_copy %z <- %y; }
        where { f32(%x), $a > 1 }
        rewrite { tensor_scalar $f %z <- %x, $a {engine = $e}; }",
    );
    assert_eq!(found, ["unknown instruction `tensor_scallar`"]);
}
