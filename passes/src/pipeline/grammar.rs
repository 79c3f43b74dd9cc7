//! The generated pest parser, and what its rules are called in messages.

#![allow(missing_docs)] // the derive makes an undocumented enum of the rules

use pest_derive::Parser;

#[derive(Parser)]
#[grammar = "pipeline/pipeline.pest"]
pub(super) struct Grammar;

/// What a message calls a rule; `None` for rules that only structure others.
pub(super) fn rule_name(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::element | Rule::list => "a pass or an anchor",
        Rule::name => "a name",
        Rule::option => "an option",
        Rule::value | Rule::bare | Rule::braced => "a value",
        Rule::quoted => "a quoted value",
        Rule::comma => "`,`",
        Rule::open | Rule::nest => "`(`",
        Rule::close => "`)`",
        Rule::open_brace | Rule::options => "`{`",
        Rule::close_brace => "`}`",
        Rule::equals => "`=`",
        Rule::end | Rule::EOI => "the end",
        _ => return None,
    })
}
