//! `--show-dialect`.

use bir_dialect::bir::ops::{ManualFormat, OpCode, manual};
use bir_dialect::text::diag::did_you_mean;

use super::Failure;
use super::args::{Args, ManualArg};

/// The manual of the dialect, or of one op.
pub(super) fn show(args: &Args, op: Option<&str>) -> Result<String, Failure> {
    let code = match op {
        None => None,
        Some(name) => {
            let name = name.strip_prefix("bir.").unwrap_or(name);
            let known = OpCode::ALL.iter().map(|op| op.def().name);
            let code = OpCode::from_name(name).ok_or_else(|| {
                let help =
                    did_you_mean(name, known).map_or(String::new(), |help| format!("; {help}"));
                Failure::Message(format!("there is no op `{name}`{help}"))
            })?;
            Some(code)
        }
    };
    let format = match args.manual.format {
        ManualArg::Text => ManualFormat::Text,
        ManualArg::Markdown => ManualFormat::Markdown,
        ManualArg::Json => ManualFormat::Json,
    };
    Ok(manual(code, format))
}
