//! What the README shows works.

use bir_dialect::text::diag::Diagnostics;
use bir_patterns::text::{format, parse};
use bir_patterns::verify::{Effort, verify};

const README: &str = include_str!("../../README.md");

fn snippets() -> Vec<&'static str> {
    let blocks = README.split("```pat\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

#[test]
fn snippets_check_and_are_laid_out() {
    assert!(snippets().len() >= 2);
    for text in snippets() {
        crate::common::library(text);
        let mut diags = Diagnostics::new();
        let file = parse(text, &mut diags);
        let once = format(&file, text);
        // One condition a line is the layout; the page puts several on one to save room.
        assert_eq!(format(&parse(&once, &mut diags), &once), once);
    }
}

#[test]
fn the_tutorials_rules_are_true_and_the_authors_slip_is_found() {
    let good = crate::common::library(snippets()[0]);
    let set = good.set("mine").unwrap();
    for rule in &set.rules {
        let verdict = verify(&good, set, rule, Effort::default());
        assert!(verdict.holds(), "{}: {verdict:?}", rule.name);
    }
    let slip = crate::common::library(snippets()[1]);
    let set = slip.set("more").unwrap();
    assert!(
        verify(&slip, set, &set.rules[0], Effort::default())
            .refuted
            .is_some()
    );
}

#[test]
fn every_constraint_and_rewrite_is_documented_and_sorted() {
    let constraints = bir_patterns::constraints::CONSTRAINTS;
    assert!(constraints.is_sorted_by_key(|one| one.name));
    assert!(constraints.iter().all(|one| !one.doc.is_empty()));
    let natives = bir_patterns::natives::NATIVES;
    assert!(natives.is_sorted_by_key(|one| one.name));
    assert!(natives.iter().all(|one| !one.doc.is_empty()));
}
