//! The `dynamorph` program: arguments in, exit code out. Everything else is in `cli` and in the library.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
