//! The pattern sets a run knows, for the passes that apply them.

use std::sync::{Arc, OnceLock};

use bir_patterns::{Library, Remarks};

/// Sets, and what is told about their use.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    library: Arc<OnceLock<Library>>,
    /// Which remarks are made.
    pub remarks: Remarks,
}

impl Rules {
    /// Of a library that is loaded.
    pub fn new(library: Library, remarks: Remarks) -> Rules {
        let cell = OnceLock::new();
        let _ = cell.set(library);
        Rules {
            library: Arc::new(cell),
            remarks,
        }
    }

    /// Of the shipped sets, which are read when they are first asked for.
    pub fn shipped(remarks: Remarks) -> Rules {
        Rules {
            remarks,
            ..Rules::default()
        }
    }

    /// The sets; the shipped ones, read now if nobody asked before.
    pub fn library(&self) -> &Library {
        self.library.get_or_init(Library::shipped)
    }
}
