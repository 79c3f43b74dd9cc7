//! The generated pest parser, and what its rules are called in messages.

#![allow(missing_docs)] // the derive makes an undocumented enum of the rules

use pest_derive::Parser;

#[derive(Parser)]
#[grammar = "text/pattern.pest"]
pub(super) struct Grammar;

/// What a message calls a rule; `None` for rules that only structure others.
pub(super) fn rule_name(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::EOI => "the end of the item",
        Rule::item | Rule::set | Rule::import | Rule::option | Rule::pattern | Rule::law => {
            "`set`, `import`, `option`, `pattern` or `rewrite`"
        }
        Rule::kw_match | Rule::r#match => "`match`",
        Rule::kw_where | Rule::where_block => "`where`",
        Rule::kw_rewrite | Rule::rewrite => "`rewrite`",
        Rule::statement => "an instruction",
        Rule::operand | Rule::left | Rule::right | Rule::place => "an operand",
        Rule::word | Rule::word_list => "a word",
        Rule::tile => "a tile `%name`",
        Rule::attribute => "an attribute `$name`",
        Rule::variable => "a variable `?name`",
        Rule::ident => "a name",
        Rule::number => "a number",
        Rule::integer => "an integer",
        Rule::string => "a text in quotes",
        Rule::dict => "attributes `{…}`",
        Rule::entry => "an attribute name",
        Rule::value => "a value",
        Rule::condition | Rule::one | Rule::named => "a condition",
        Rule::relation => "a comparison",
        Rule::term | Rule::apply => "a term",
        Rule::header => "settings `(…)`",
        Rule::setting => "a setting",
        Rule::truth => "`true` or `false`",
        Rule::argument => "an argument",
        Rule::sum | Rule::factor => "arithmetic",
        Rule::sum_op => "`+` or `-`",
        Rule::mul_op => "`*` or `/`",
        Rule::maybe => "`?`",
        Rule::call => "`call`",
        Rule::semi => "`;`",
        Rule::driver => "`single_shot` or `greedy`",
        _ => return None,
    })
}
