//! Commands that a test runs, and what they printed.
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Runs commands to their end.
pub trait CommandExt {
    /// Runs a command, which must succeed.
    fn succeed(&mut self) -> Output;

    /// Runs a command with this text as its standard input.
    fn pipe(&mut self, input: &str) -> Output;
}

impl CommandExt for Command {
    #[track_caller]
    fn succeed(&mut self) -> Output {
        let output = self.output().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        output.success()
    }

    fn pipe(&mut self, input: &str) -> Output {
        let command = self.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

/// Short access to what a command printed, and checks of its status.
pub trait OutputExt {
    /// Returns the standard output.
    fn out(&self) -> String;
    /// Returns the standard error.
    fn err(&self) -> String;
    /// Returns the output of a command that must have succeeded.
    fn success(self) -> Self;
    /// Returns the JSON that a command printed, which must have succeeded.
    fn json(&self) -> Value;
    /// Asserts the exit status, and that the standard error has these words.
    fn fails(&self, status: i32, words: &str);
}

impl OutputExt for Output {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[track_caller]
    fn success(self) -> Self {
        assert!(self.status.success(), "{}\n{}{}", self.status, self.out(), self.err());
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        assert!(self.status.success(), "{}\n{}{}", self.status, self.out(), self.err());
        serde_json::from_slice(&self.stdout).unwrap()
    }

    #[track_caller]
    fn fails(&self, status: i32, words: &str) {
        assert_eq!(self.status.code(), Some(status), "{}{}", self.out(), self.err());
        assert!(self.err().contains(words), "no {words:?}: {}", self.err());
    }
}
