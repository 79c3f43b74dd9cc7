//! The op table as a manual: for a terminal, for a page, for tools.

mod json;
mod pages;

use super::def::{AttrType, Kind, OpDef, OperandDef, Syntax};
use super::table::{COMMON_ATTRS, OpCode};

/// How the manual is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManualFormat {
    /// For a terminal.
    Text,
    /// For a page.
    Markdown,
    /// For tools: everything a front end or generator needs.
    Json,
}

impl ManualFormat {
    /// The format of that name.
    pub fn from_name(name: &str) -> Option<ManualFormat> {
        match name {
            "text" => Some(ManualFormat::Text),
            "markdown" => Some(ManualFormat::Markdown),
            "json" => Some(ManualFormat::Json),
            _ => None,
        }
    }
}

/// The manual page of one op, or of the whole table. Ends in a newline.
pub fn manual(op: Option<OpCode>, format: ManualFormat) -> String {
    let ops: &[OpCode] = match &op {
        Some(op) => std::slice::from_ref(op),
        None => OpCode::ALL,
    };
    match format {
        ManualFormat::Text => pages::text(ops),
        ManualFormat::Markdown => pages::markdown(ops, op.is_none()),
        ManualFormat::Json => json::json(ops, op.is_none()),
    }
}

/// An op's doc comment in two parts.
struct Doc {
    /// Paragraphs, each on one line.
    paragraphs: Vec<String>,
    /// Lines of the example in custom form.
    example: Vec<String>,
}

impl Doc {
    fn of(def: &OpDef) -> Doc {
        let mut doc = Doc {
            paragraphs: Vec::new(),
            example: Vec::new(),
        };
        let (mut in_code, mut fresh) = (false, true);
        for line in def.doc.lines() {
            let line = line.strip_prefix(' ').unwrap_or(line);
            if line.starts_with("```") {
                in_code = !in_code;
                fresh = true;
            } else if in_code {
                doc.example.push(line.to_owned());
            } else if line.trim().is_empty() {
                fresh = true;
            } else {
                match doc.paragraphs.last_mut() {
                    Some(last) if !fresh => {
                        last.push(' ');
                        last.push_str(line.trim());
                    }
                    _ => doc.paragraphs.push(line.trim().to_owned()),
                }
                fresh = false;
            }
        }
        doc
    }
}

/// How a statement of the op is written, as one line.
fn synopsis(def: &OpDef) -> String {
    let attrs = attrs_synopsis(def);
    let name = def.name;
    match def.syntax {
        Syntax::Instruction => {
            let mut out = String::new();
            if def.result {
                out.push_str("[%result =] ");
            }
            out.push_str(name);
            for word in def.words {
                out.push(' ');
                out.push_str(&word_slot(def, word));
            }
            let left = operands_synopsis(def, OperandDef::is_left);
            let right = operands_synopsis(def, |operand| !operand.is_left());
            if !left.is_empty() {
                out.push(' ');
                out.push_str(&left);
            }
            if !right.is_empty() {
                out.push_str(" <- ");
                out.push_str(&right);
            }
            out + &attrs
        }
        Syntax::Alloc => format!("%name = alloc <space><<shape>x<dtype>> [at <placement>]{attrs}"),
        Syntax::Module => format!("bir.module @name{attrs} {{ <functions> }}"),
        Syntax::Func => format!("bir.func @name{attrs} {{ <locations> <blocks> }}"),
        Syntax::Loop => {
            format!("loop %index = <lower> to <upper> [step <step>]{attrs} {{ <blocks> }}")
        }
        Syntax::While => format!("while %cond{attrs} {{ <blocks> }}"),
        Syntax::Br => "br ^block".to_owned(),
        Syntax::CondBr => "cond_br %cond, ^then, ^else".to_owned(),
        Syntax::Depset => format!("depset #<number> = [<id | #number>, ...]{attrs}"),
        Syntax::Implicit => "(not written in the custom form)".to_owned(),
    }
}

fn word_slot(def: &OpDef, attr: &str) -> String {
    match def.attr(attr) {
        Some(entry) if !entry.required => format!("[<{attr}>]"),
        _ => format!("<{attr}>"),
    }
}

fn operands_synopsis(def: &OpDef, which: impl Fn(&OperandDef) -> bool) -> String {
    let mut out = String::new();
    for operand in def.operands.iter().filter(|operand| which(operand)) {
        let mut slot = String::new();
        if let Some(keyword) = operand.keyword {
            slot.push_str(keyword);
            slot.push(' ');
        }
        for word in operand.words.iter() {
            // The keyword of a group of words is often the first word's attribute itself.
            slot.push_str(&word_slot(def, word));
            slot.push(' ');
        }
        match operand.kind {
            Kind::Imm(_) if operand.spaces.is_empty() => slot.push_str("<number>"),
            Kind::Imm(_) => slot.push_str(&format!("%{}|<number>", operand.name)),
            Kind::RegImm => slot.push_str(&format!("%{}|<integer>", operand.name)),
            _ => slot.push_str(&format!("%{}", operand.name)),
        }
        if operand.variadic {
            slot.push_str(", …");
        }
        let comma = if out.is_empty() { "" } else { ", " };
        if operand.optional {
            out.push_str(&format!("[{comma}{slot}]"));
        } else {
            out.push_str(&format!("{comma}{slot}"));
        }
    }
    out
}

/// ` {required = <…>, …}` or ` [{…}]`; attributes that are words are written as such.
fn attrs_synopsis(def: &OpDef) -> String {
    let is_word = |name: &str| {
        def.words.contains(&name)
            || def
                .operands
                .iter()
                .any(|operand| operand.words.contains(&name))
            || (def.syntax == Syntax::Loop && name == "step")
            || (def.syntax == Syntax::Alloc && name == "at")
    };
    let slots: Vec<String> = def
        .attrs
        .iter()
        .filter(|attr| !is_word(attr.name))
        .map(|attr| match attr.ty {
            AttrType::Flag => attr.name.to_owned(),
            _ => format!("{} = <{}>", attr.name, type_word(&attr.ty)),
        })
        .collect();
    if slots.is_empty() {
        return String::new();
    }
    let list = slots.join(", ");
    if def
        .attrs
        .iter()
        .any(|attr| attr.required && !is_word(attr.name))
    {
        format!(" {{{list}}}")
    } else {
        format!(" [{{{list}}}]")
    }
}

/// One word for an attribute's type.
fn type_word(ty: &AttrType) -> String {
    match ty {
        AttrType::Flag => "flag".to_owned(),
        AttrType::Int { .. } => "integer".to_owned(),
        AttrType::Number(dtype) => dtype.name().to_owned(),
        AttrType::Enum(def) => def.name.to_owned(),
        AttrType::IntList { .. } => "integers".to_owned(),
        AttrType::Pattern => "pattern".to_owned(),
        AttrType::Str => "string".to_owned(),
        AttrType::Symbol => "symbol".to_owned(),
        AttrType::DType => "dtype".to_owned(),
        AttrType::Accumulate => "accumulate".to_owned(),
        AttrType::Waits => "waits".to_owned(),
        AttrType::Signals => "signals".to_owned(),
        AttrType::Placement => "placement".to_owned(),
        AttrType::Data => "data".to_owned(),
        AttrType::RankGroups => "rank groups".to_owned(),
    }
}

/// An attribute's type in full, as the manual says it.
fn type_text(ty: &AttrType) -> String {
    let range = |min: i64, max: i64| match (min, max) {
        (i64::MIN, i64::MAX) => String::new(),
        (min, i64::MAX) => format!(", at least {min}"),
        (min, max) => format!(" from {min} to {max}"),
    };
    match ty {
        AttrType::Flag => "flag".to_owned(),
        AttrType::Int { min, max } => format!("integer{}", range(*min, *max)),
        AttrType::Number(dtype) => format!("number of {dtype}"),
        AttrType::Enum(def) => def.words.join(" | "),
        AttrType::IntList { min, max } => format!("list of integers{}", range(*min, *max)),
        AttrType::Pattern => "list of [step, count], outermost first".to_owned(),
        AttrType::Str => "string".to_owned(),
        AttrType::Symbol => "symbol, @name".to_owned(),
        AttrType::DType => "dtype".to_owned(),
        AttrType::Accumulate => "flag, or unless_first(%loop_index)".to_owned(),
        AttrType::Waits => "list of waits, [4 >= 36]".to_owned(),
        AttrType::Signals => "list of signals, [6 += 1 @complete]".to_owned(),
        AttrType::Placement => "[partition, byte], [partition, bank n], or an address".to_owned(),
        AttrType::Data => "dense<\"0x…\"> or the name of an .npy file".to_owned(),
        AttrType::RankGroups => "lists of ranks, [[0, 1], [2, 3]]".to_owned(),
    }
}

fn kind_text(operand: &OperandDef) -> &'static str {
    match operand.kind {
        Kind::Out => "written",
        Kind::InOut => "read and written",
        Kind::In => "read",
        Kind::Imm(_) if operand.spaces.is_empty() => "number",
        Kind::Imm(_) => "read, or a number",
        Kind::RegIn => "register read",
        Kind::RegOut => "register written",
        Kind::RegImm => "register read, or an integer",
    }
}

/// Attributes every instruction may carry, for pages of instructions.
fn common_attrs(def: &OpDef) -> &'static [super::def::AttrDef] {
    if def.engines.is_some() {
        COMMON_ATTRS
    } else {
        &[]
    }
}
