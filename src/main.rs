//! The `xpeak` command: everything lives in the library, see [`xpeak::cli`].

fn main() -> std::process::ExitCode {
    xpeak::cli::main()
}
