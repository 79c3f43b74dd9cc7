//! The cache of statement shapes against the grammar alone, over generated statements and the files under `test/`.

use crate::support::check::{Parser, check, custom, generic, read, verifies};
use crate::support::generate::Generator;
use crate::support::{Faults, all_files, effort, good_files};

/// Statements generated per unit of effort.
const STATEMENTS: usize = 24_000;
/// Statements of one shape that follow each other.
const VARIANTS: usize = 3;

#[test]
fn every_test_file_reads_alike_with_and_without_the_cache() {
    for (path, text) in all_files() {
        println!("{}", path.display());
        check(&text);
    }
}

#[test]
fn generated_statements_read_alike_with_and_without_the_cache() {
    let mut faults = Faults::default();
    let mut generator = Generator::new(1);
    let (mut made, mut good) = (0, 0);
    while made < STATEMENTS * effort() {
        let mut statements = Vec::new();
        for _ in 0..3 {
            let base = generator.statement(made + statements.len() / (VARIANTS + 1));
            for _ in 0..VARIANTS {
                let variant = generator.variant(&base);
                statements.push(variant);
            }
            statements.push(base);
        }
        made += statements.len();
        // Together, errors beside errors,
        let program = generator.program(&statements);
        faults.check(&program);
        // and what is right of it, also as the generic form with other names and numbers.
        statements.retain(|statement| {
            let program = generator.program(std::slice::from_ref(statement));
            let read = read(&program, Parser::Plain);
            read.is_good() && verifies(&read)
        });
        good += statements.len();
        let program = generator.program(&statements);
        faults.check(&program);
        let text = generic(&read(&program, Parser::Plain).ir);
        faults.check(&generator.variant(&text));
    }
    faults.none();
    println!("{made} statements, {good} of them right");
    assert!(
        good * 10 > made,
        "only {good} of {made} statements are right: the generator has lost touch"
    );
}

#[test]
fn files_come_back_from_either_form() {
    for (path, text) in good_files() {
        let first = read(&text, Parser::Cached);
        assert!(first.is_good(), "{}", path.display());
        let wanted = custom(&first.ir);
        let again = read(&generic(&first.ir), Parser::Cached);
        assert!(again.is_good(), "{}", path.display());
        assert_eq!(custom(&again.ir), wanted, "{}", path.display());
    }
}
