//! Ctrl-C and its like: once to stop where the run can go on later, twice to stop at once.

use dynamorph::Stop;
use dynamorph::error::{Error, Kind};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cli::STOPPED;

/// What signals ask to stop. The first one asks, the second one ends the process; what was not finished is done again when the run goes on.
pub(crate) fn stop_on_signals() -> Stop {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM] {
        // Where they cannot be set, a signal ends the process, and the run goes on from there as well. In this order: the first signal only
        // sets the flag, which the second one finds.
        let _ = flag::register_conditional_shutdown(signal, i32::from(STOPPED), stop.flag());
        let _ = flag::register(signal, stop.flag());
    }
    stop
}

/// Adds the command that goes on to an error that a later attempt may not meet.
pub(crate) fn how_to_go_on(error: Error) -> Error {
    match error.kind() {
        Kind::Interrupted | Kind::Unavailable | Kind::Service => {
            let command = std::env::args().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
            error.with("goes on with", command)
        }
        _ => error,
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        for (word, expected) in
            [("--from", "--from"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''"), ("s3://b/p", "s3://b/p"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
