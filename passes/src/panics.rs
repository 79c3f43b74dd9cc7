//! Panics of passes as values.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// A panic caught.
#[derive(Clone, Debug)]
pub(crate) struct Caught {
    /// Its message.
    pub(crate) message: String,
    /// Where in our source, if known.
    pub(crate) place: Option<String>,
}

thread_local! {
    /// While a pass runs on this thread: where the last panic was.
    static WATCHED: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `body`; a panic in it is returned and not printed.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Caught> {
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let watched = WATCHED.with_borrow_mut(|watched| match watched {
                Some(place) => {
                    *place = info.location().map(ToString::to_string);
                    true
                }
                None => false,
            });
            if !watched {
                others(info);
            }
        }));
    });
    let outer = WATCHED.replace(Some(None));
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    let place = WATCHED.replace(outer).flatten();
    result.map_err(|payload| {
        if let Some(caught) = payload.downcast_ref::<Caught>() {
            return caught.clone();
        }
        let message = match (
            payload.downcast_ref::<&str>(),
            payload.downcast_ref::<String>(),
        ) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            _ => "a panic without a message".to_owned(),
        };
        Caught { message, place }
    })
}

/// Panics on this thread with what was caught on another.
pub(crate) fn pass_on(caught: Caught) -> ! {
    panic::resume_unwind(Box::new(caught))
}
