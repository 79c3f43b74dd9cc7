//! Pipeline strings: what is dumped reads back to itself, and hostile strings end in a report.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stop at the first surprise

use bir_dialect::text::diag::Diagnostics;
use bir_passes::pipeline::{Pipeline, parse};
use bir_passes::planes::Plane;
use bir_passes::{Pass, Registry};
use proptest::prelude::*;

fn read(text: &str) -> Pipeline {
    let mut diags = Diagnostics::new();
    parse(&Registry::with_test_passes(), text, &mut diags)
        .unwrap_or_else(|| panic!("`{text}`: {:?}", diags.iter().collect::<Vec<_>>()))
}

fn options(pass: &dyn Pass) -> Vec<String> {
    (0..pass.option_defs().len())
        .map(|number| pass.option(number))
        .collect()
}

/// Pipelines of any passes with any texts tried as values.
fn pipelines() -> impl Strategy<Value = Pipeline> {
    let text = prop_oneof![
        "[a-z ,{}()\"'\\\\=\n\t%é]{0,12}",
        "[0-9]{1,4}",
        Just("true".to_owned()),
        Just("json".to_owned()),
    ];
    let step = (
        any::<prop::sample::Index>(),
        prop::collection::vec(text, 0..4),
    );
    prop::collection::vec(step, 0..8).prop_map(|steps| {
        let registry = Registry::with_test_passes();
        let names: Vec<&str> = registry.names().collect();
        let mut pipeline = Pipeline::default();
        for (name, values) in steps {
            let mut pass = registry.make(names[name.index(names.len())]).unwrap();
            for (number, value) in values.iter().enumerate() {
                // Values of the wrong type leave the default.
                if number < pass.option_defs().len() {
                    let _ = pass.set_option(number, value);
                }
            }
            pipeline.push(pass);
        }
        pipeline
    })
}

proptest! {
    #[test]
    fn what_is_dumped_reads_back_to_equal_passes_and_options(pipeline in pipelines()) {
        let text = pipeline.dump();
        let again = read(&text);
        prop_assert_eq!(again.dump(), text);
        prop_assert_eq!(again.steps.len(), pipeline.steps.len());
        for (a, b) in pipeline.steps.iter().zip(&again.steps) {
            prop_assert_eq!(a.pass.name(), b.pass.name());
            prop_assert_eq!(options(a.pass.as_ref()), options(b.pass.as_ref()));
        }
    }

    #[test]
    fn any_text_is_a_pipeline_or_a_report(text in "[a-z_,{}()\"'\\\\= \néunrol-]{0,40}") {
        let mut diags = Diagnostics::new();
        let pipeline = parse(&Registry::new(), &text, &mut diags);
        prop_assert_eq!(pipeline.is_none(), diags.has_errors());
    }
}

#[test]
fn deep_brackets_are_reported() {
    for bracket in ["(", "{", "module("] {
        let mut diags = Diagnostics::new();
        assert!(parse(&Registry::new(), &bracket.repeat(100_000), &mut diags).is_none());
    }
}

#[test]
fn shorter_strings_are_completed() {
    let whole = "program(module(func(unroll,canonicalize_names)),verifier)";
    for text in [
        "unroll, canonicalize-names, verifier",
        "func(unroll), func(canonicalize_names), verifier",
        "module(func(unroll),canonicalize_names),program(verifier)",
        "module(unroll,func(),canonicalize-names),verifier{}",
    ] {
        assert_eq!(read(text).dump(), read(whole).dump(), "{text}");
    }
}

#[test]
fn named_pipelines_dump_and_read_back() {
    for level in 0..=3 {
        let pipeline = Pipeline::of_plane(&Registry::new(), &Plane::new(level).unwrap());
        assert_eq!(read(&pipeline.dump()).dump(), pipeline.dump());
    }
}
