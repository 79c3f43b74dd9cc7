//! Options of passes: declared once, as the fields of the pass, by [`pass_options!`](crate::pass_options).
//!
//! The declaration gives the struct with its defaults, reading and printing of every option by
//! name, and the texts of help and manual.

/// A type an option can have. `parse` and `print` are inverse.
pub trait OptionValue: Sized {
    /// What help shows for a value.
    const KIND: &'static str;

    /// Reads a value; the error says what was expected and found.
    fn parse(text: &str) -> Result<Self, String>;

    /// The value as text.
    fn print(&self) -> String;
}

impl OptionValue for bool {
    const KIND: &'static str = "true|false";

    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("expected `true` or `false`, found `{text}`")),
        }
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for u64 {
    const KIND: &'static str = "N";

    fn parse(text: &str) -> Result<u64, String> {
        text.parse()
            .map_err(|_| format!("expected a whole number from 0, found `{text}`"))
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for String {
    const KIND: &'static str = "TEXT";

    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn print(&self) -> String {
        self.clone()
    }
}

/// Names, separated by blanks or commas.
impl OptionValue for Vec<String> {
    const KIND: &'static str = "NAMES";

    fn parse(text: &str) -> Result<Vec<String>, String> {
        Ok(text
            .split([' ', ',', '\n', '\t', '\r'])
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect())
    }

    fn print(&self) -> String {
        self.join(" ")
    }
}

/// A number, or a word for "no limit".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// At most so many.
    At(u64),
}

impl OptionValue for Limit {
    const KIND: &'static str = "N|unlimited";

    fn parse(text: &str) -> Result<Limit, String> {
        match (text, text.parse()) {
            ("unlimited", _) => Ok(Limit::Unlimited),
            (_, Ok(count)) => Ok(Limit::At(count)),
            _ => Err(format!(
                "expected a whole number or `unlimited`, found `{text}`"
            )),
        }
    }

    fn print(&self) -> String {
        match self {
            Limit::Unlimited => "unlimited".to_owned(),
            Limit::At(count) => count.to_string(),
        }
    }
}

/// What is known of one option.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef {
    /// Name in Rust's spelling.
    pub name: &'static str,
    /// What a value looks like.
    pub kind: &'static str,
    /// One line for help and manual.
    pub doc: &'static str,
}

impl OptionDef {
    /// The name as pipelines print it: with hyphens.
    pub fn printed(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// The options of a pass, by number. Implemented by [`pass_options!`](crate::pass_options).
pub trait PassOptions {
    /// The pass's manual.
    fn doc(&self) -> &'static str;

    /// Its options in order of declaration.
    fn option_defs(&self) -> &'static [OptionDef];

    /// Sets an option; the error says what was expected and found.
    fn set_option(&mut self, number: usize, text: &str) -> Result<(), String>;

    /// An option's value as text.
    fn option(&self, number: usize) -> String;
}

/// Whether two names are one: hyphens and underscores do not differ.
pub fn same_name(a: &str, b: &str) -> bool {
    let fold = |c: u8| if c == b'-' { b'_' } else { c };
    a.len() == b.len() && a.bytes().map(fold).eq(b.bytes().map(fold))
}

/// Declares a pass's struct with its options: documentation, type and default of each.
#[macro_export]
macro_rules! pass_options {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $option_doc:literal])*
                $option:ident: $ty:ty = $default:expr
            ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Debug)]
        $vis struct $name {
            $(
                $(#[doc = $option_doc])*
                $vis $option: $ty,
            )*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($option: $default,)* }
            }
        }

        impl $crate::options::PassOptions for $name {
            fn doc(&self) -> &'static str {
                concat!($($doc, "\n",)*)
            }

            fn option_defs(&self) -> &'static [$crate::options::OptionDef] {
                &[$(
                    $crate::options::OptionDef {
                        name: stringify!($option),
                        kind: <$ty as $crate::options::OptionValue>::KIND,
                        doc: concat!($($option_doc,)*),
                    },
                )*]
            }

            #[allow(unused_variables, unused_mut, unused_assignments)]
            fn set_option(&mut self, number: usize, text: &str) -> Result<(), String> {
                let mut at = 0;
                $(
                    if number == at {
                        self.$option = $crate::options::OptionValue::parse(text)?;
                        return Ok(());
                    }
                    at += 1;
                )*
                Err(format!("there is no option number {number}"))
            }

            #[allow(unused_variables, unused_mut, unused_assignments)]
            fn option(&self, number: usize) -> String {
                let mut at = 0;
                $(
                    if number == at {
                        return $crate::options::OptionValue::print(&self.$option);
                    }
                    at += 1;
                )*
                String::new()
            }
        }
    };
}
