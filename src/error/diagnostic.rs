//! Mistakes in a pipeline file: collected, each with its place, shown with the quoted line.

use std::fmt;
use std::ops::Range;

/// Bytes of the pipeline file.
pub type Span = Range<usize>;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub span: Span,
    /// What was found and what was expected.
    pub message: String,
    /// The next move, where one is known: the nearest right name, an example.
    pub help: Option<String>,
}

/// The mistakes found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
}

impl Diagnostics {
    /// No mistakes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mistake.
    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.found.push(Diagnostic { span, message: message.into(), help: None });
    }

    /// Adds a mistake with the next move.
    pub fn error_with_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(Diagnostic { span, message: message.into(), help: Some(help.into()) });
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The mistakes in the order of the file.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut sorted: Vec<_> = self.found.iter().collect();
        sorted.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        sorted
    }

    /// The text for a terminal: every mistake with `file:line:column`, the quoted line and its help.
    #[must_use]
    pub fn render(&self, file: &str, text: &str) -> String {
        self.sorted().into_iter().map(|diagnostic| diagnostic.render(file, text)).collect()
    }
}

impl Diagnostic {
    /// The text for a terminal: `file:line:column`, the message, the quoted line and the help.
    #[must_use]
    pub fn render(&self, file: &str, text: &str) -> String {
        let place = Place::of(&self.span, text);
        let gutter = " ".repeat(place.line.to_string().len());
        let mut out = format!(
            "{file}:{}:{}: error: {}\n{gutter} |\n{} | {}\n{gutter} | {}{}\n",
            place.line,
            place.column,
            self.message,
            place.line,
            place.quoted,
            " ".repeat(place.column - 1),
            "^".repeat(place.width),
        );
        if let Some(help) = &self.help {
            out.push_str(&format!("{gutter} = help: {help}\n"));
        }
        out.push('\n');
        out
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, diagnostic) in self.sorted().into_iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", diagnostic.message)?;
        }
        Ok(())
    }
}

/// A span in lines and columns; both count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'t> {
    /// The line.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// How many characters of this line the span covers, at least 1.
    pub width: usize,
    /// The whole line.
    pub quoted: &'t str,
}

impl<'t> Place<'t> {
    /// Where `span` lies in `text`.
    #[must_use]
    pub fn of(span: &Span, text: &'t str) -> Self {
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor_boundary(text, span.end).clamp(start, line_end);
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end].chars().count().max(1),
            quoted: text[line_start..line_end].trim_end_matches('\r'),
        }
    }
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
