//! `bir-opt`: reads a `.bir` file, runs passes over it, verifies and prints it.

use std::io::Write as _;

fn main() {
    let code = bir_tools::opt::main(std::env::args_os());
    // The process ends here: returning the memory of a large module one table at a time would
    // only take time.
    let _ = std::io::stdout().flush();
    std::process::exit(code)
}
