//! The generated pest parser, and what its rules are called in messages.

#![allow(missing_docs)] // the derive makes an undocumented enum of the rules

use pest_derive::Parser;

#[derive(Parser)]
#[grammar = "text/grammar.pest"]
pub(crate) struct Grammar;

/// What a message calls a rule; `None` for rules that only structure others.
pub(crate) fn rule_name(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::EOI => "the end of the statement",
        Rule::value => "a value `%name`",
        Rule::place | Rule::operand | Rule::operands => "an operand",
        Rule::literal | Rule::number | Rule::truth | Rule::typed_number => "a number",
        Rule::int | Rule::integer => "an integer",
        Rule::hex => "a hex number",
        Rule::float => "a decimal number",
        Rule::word | Rule::words | Rule::ident | Rule::word_attr => "a word",
        Rule::symbol => "a symbol `@name`",
        Rule::caret => "a label `^name`",
        Rule::string => "a string",
        Rule::dtype | Rule::dtype_word => "a dtype",
        Rule::shape => "a shape such as `128x512xf32`",
        Rule::space => "`dram`, `sbuf` or `psum`",
        Rule::mem => "a location type such as `sbuf<128x512xf32>`",
        Rule::type_ | Rule::type_attr => "a type",
        Rule::types => "a list of types",
        Rule::affine | Rule::affine_attr | Rule::term | Rule::index => "an index expression",
        Rule::slices | Rule::raw | Rule::access => "an access `[…]`",
        Rule::slice_length | Rule::slice_range | Rule::slice_at => "a slice",
        Rule::recast => "`as dtype`",
        Rule::pair => "`step x count`",
        Rule::window => "a partition window `p start:end`",
        Rule::offset => "an offset `off n`",
        Rule::dict => "attributes `{…}`",
        Rule::props => "properties `<{…}>`",
        Rule::entry | Rule::key => "an attribute name",
        Rule::attr => "an attribute value",
        Rule::loc => "`loc(\"file\":line:col)`",
        Rule::placement => "a placement `at …`",
        Rule::bank => "`bank n`",
        Rule::step => "`step n`",
        Rule::bound => "a loop bound",
        Rule::left | Rule::right => "operands",
        Rule::results | Rule::generic_results => "results",
        Rule::op_name => "an instruction name",
        Rule::uses => "operands `(…)`",
        Rule::succs => "successors `[…]`",
        Rule::generic_types => "`: (types) -> (types)`",
        Rule::plus => "`+`",
        Rule::minus => "`-`",
        Rule::dense => "`dense<…>`",
        Rule::elements => "elements",
        Rule::event => "`@complete` or `@read`",
        Rule::wait_op => "`>=`",
        Rule::signal_op => "`+=`, `-=` or `:=`",
        _ => return None,
    })
}
