//! From JSON documents to lines: finds the elements of arrays, of pages of a scan and of request files, and gives each as one line.
//! Knows strings and brackets; whether an element is an item is the decoder's business.

use crate::error::{Error, Kind};
use crate::store::Location;

/// Levels of brackets inside an element; what the decoder follows takes 131.
const LEVELS: usize = 1_000;

/// Bytes of a number that are looked at; a count has fewer.
const LONGEST_WORD: usize = 20;

/// Members of a page which say that the scan stopped before its end.
const THERE_IS_MORE: [&str; 2] = ["LastEvaluatedKey", "NextToken"];

/// Finds the elements in a text that comes in pieces.
///
/// Memory: none but the element under way, which is at the end of the output.
#[derive(Debug)]
pub(super) struct Framer {
    /// An element may be so long, as it is given.
    pub(super) longest: usize,
    state: State,
    document: Document,
    /// What the value under way is.
    role: Role,
    part: Part,
    /// The brackets that close what is open in the value under way.
    open: Vec<u8>,
    /// The last byte that was given belongs to a number, `true`, `false` or `null`.
    after_word: bool,
    /// Blanks were left out after it.
    gap: bool,
    /// Bytes of the value under way that are no blanks.
    weight: u64,
    is_null: bool,
    /// Where the element under way starts in the output.
    start: usize,
    /// Where the value of the member under way starts in the output, while its object may turn out to be an element.
    member: usize,
    /// The name of the member under way, or the start of a long one.
    name: Vec<u8>,
    /// The member of the page under way which says that there is more; of the last page, after it.
    more: Option<&'static str>,
    page_more: Option<&'static str>,
    /// The number, `true`, `false` or `null` that is the value of the member under way, or its start.
    word: Vec<u8>,
    /// What the `Count` of the page under way says, and how many elements came before it.
    page_count: Option<u64>,
    page_start: u64,
    /// The first page whose `Count` is not the number of its elements.
    miscounted: Option<Miscounted>,
    /// Elements given so far.
    elements: u64,
    /// Bytes of the text before the piece under way.
    before: u64,
    /// The line of the text, and the one in which the element under way starts.
    line: u64,
    element_line: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between documents.
    Between,
    /// After `[`.
    FirstElement,
    /// After a comma in an array.
    Element,
    AfterElement,
    /// After `{`.
    FirstName,
    /// After a comma in an object.
    Name,
    InName {
        escaped: bool,
    },
    AfterName,
    Member,
    AfterMember,
    /// In a value.
    Value,
}

/// The document under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    /// Its elements are given as they are.
    Array,
    /// An element by itself, unless it turns out to be one of the next two. It is given while that is not known.
    Object,
    /// `{"Items":[…],…}`: its elements are attributes of items.
    Page,
    /// `{"TABLE":[{"PutRequest":…},…],…}`: its elements are given as they are.
    Requests,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An element of an array.
    Element,
    /// A member of an object that may be an element.
    Kept,
    /// A member that is passed over.
    Skipped,
}

/// A page whose `Count` is not the number of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miscounted {
    /// What it says.
    pub(super) count: u64,
    /// Its elements.
    pub(super) found: u64,
    /// The line in which it ends.
    pub(super) line: u64,
}

/// Where in a value the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Between tokens.
    Tokens,
    String,
    Escape,
    /// In a number, `true`, `false` or `null` that is the whole value.
    Word,
}

/// Why the rest of a text cannot be trusted, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    problem: Problem,
    byte: u64,
    line: u64,
    /// Elements before it.
    elements: u64,
    /// Where the element under way starts.
    element_line: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Unexpected { expected: &'static str, found: &'static str },
    Cut { expected: &'static str },
    TooLong { limit: usize, found: usize },
}

impl Framer {
    /// A framer for a text whose elements have `longest` bytes at the most.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            longest,
            state: State::Between,
            document: Document::Array,
            role: Role::Skipped,
            part: Part::Tokens,
            open: Vec::new(),
            after_word: false,
            gap: false,
            weight: 0,
            is_null: false,
            start: 0,
            member: 0,
            name: Vec::new(),
            more: None,
            page_more: None,
            word: Vec::new(),
            page_count: None,
            page_start: 0,
            miscounted: None,
            elements: 0,
            before: 0,
            line: 1,
            element_line: 1,
        }
    }

    /// Reads `text`, the next piece, and appends a line to `out` for each element; gives how many bytes of it were taken. All are, but
    /// where `out` comes to `target` bytes: then it ends with a whole line. Else its end may be the start of a line, and is to be given
    /// again.
    ///
    /// Blanks and line breaks between tokens are left out, so that an element is one line.
    ///
    /// # Errors
    /// The first place at which the text is no sequence of JSON documents, or an element is too long.
    pub(super) fn read(&mut self, text: &[u8], out: &mut Vec<u8>, target: usize) -> Result<usize, Fault> {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let elements = self.elements;
            match self.state {
                State::Value => at = self.value(text, at, out)?,
                State::InName { escaped } => {
                    self.in_name(byte, escaped, at, out)?;
                    at += 1;
                }
                _ if is_blank(byte) => {
                    self.line += u64::from(byte == b'\n');
                    at += 1;
                }
                _ => at += usize::from(self.token(byte, at, out)?),
            }
            if self.elements > elements && out.len() >= target {
                break;
            }
        }
        self.before += at as u64;
        if self.is_in_element() {
            self.check_length(out.len() - self.start, 0)?;
        }
        Ok(at)
    }

    /// The text is at its end.
    ///
    /// # Errors
    /// When that is in the middle of a document.
    pub(super) fn end(&self) -> Result<(), Fault> {
        let expected = match (self.state, self.document) {
            (State::Between, _) => return Ok(()),
            (_, Document::Array) => "`]` after the last element",
            (_, Document::Object) => "`}` after the last member",
            (_, Document::Page | Document::Requests) => "`]` after the last element and `}` after the last member",
        };
        Err(self.fault(Problem::Cut { expected }, 0))
    }

    /// The member of the last page which says that the scan stopped before its end.
    pub(super) fn more(&self) -> Option<&'static str> {
        self.more
    }

    /// The first page whose `Count` is not the number of its elements.
    pub(super) fn miscounted(&self) -> Option<Miscounted> {
        self.miscounted
    }

    /// A page is whole.
    fn end_page(&mut self) {
        self.more = self.page_more;
        let found = self.elements - self.page_start;
        // Where the AWS CLI gives a part of a scan, which it says by a token, its counts are of the whole.
        if let Some(count) = self.page_count.filter(|count| *count != found && self.page_more != Some("NextToken")) {
            self.miscounted.get_or_insert(Miscounted { count, found, line: self.line });
        }
    }

    /// A byte between values. False: it is the first of a value, and to be given again.
    fn token(&mut self, byte: u8, at: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let is_kept = self.document == Document::Object;
        let (state, expected) = match (self.state, byte) {
            (State::Between, b'[') => (Ok(State::FirstElement), ""),
            (State::Between, b'{') => {
                (self.start, self.element_line) = (out.len(), self.line);
                out.push(byte);
                (self.document, self.page_more) = (Document::Object, None);
                (self.page_count, self.page_start) = (None, self.elements);
                self.state = State::FirstName;
                return Ok(true);
            }
            (State::Between, _) => (Err(()), "an object, an array or the end of the file"),
            (State::FirstElement | State::AfterElement, b']') if self.document == Document::Array => (Ok(State::Between), ""),
            (State::FirstElement | State::AfterElement, b']') => (Ok(State::AfterMember), ""),
            (State::FirstElement | State::Element, _) => {
                (self.start, self.element_line, self.role) = (out.len(), self.line, Role::Element);
                let expected = if self.state == State::Element { "an element" } else { "an element or `]`" };
                self.begin(byte, expected, at)?;
                if self.document == Document::Page {
                    out.extend_from_slice(b"{\"Item\":");
                }
                return Ok(false);
            }
            (State::AfterElement, b',') => (Ok(State::Element), ""),
            (State::AfterElement, _) => (Err(()), "`,` or `]` after an element"),
            (State::FirstName | State::Name, b'"') => {
                self.name.clear();
                (Ok(State::InName { escaped: false }), "")
            }
            (State::FirstName | State::AfterMember, b'}') => {
                if is_kept {
                    out.push(byte);
                    self.end_element(out, at)?;
                } else if self.document == Document::Page {
                    self.end_page();
                }
                self.state = State::Between;
                return Ok(true);
            }
            (State::FirstName, _) => (Err(()), "a name in quotes or `}`"),
            (State::Name, _) => (Err(()), "a name in quotes"),
            (State::AfterName, b':') => (Ok(State::Member), ""),
            (State::AfterName, _) => (Err(()), "`:` after a name"),
            (State::Member, b'[') if self.opens_array() => {
                if is_kept {
                    out.truncate(self.start);
                    self.document = Document::Page;
                }
                self.state = State::FirstElement;
                return Ok(true);
            }
            (State::Member, _) => {
                self.member = out.len();
                self.role = if is_kept { Role::Kept } else { Role::Skipped };
                self.begin(byte, "a value", at)?;
                return Ok(false);
            }
            (State::AfterMember, b',') => (Ok(State::Name), ""),
            (State::AfterMember, _) => (Err(()), "`,` or `}` after a value"),
            (State::InName { .. } | State::Value, _) => return Ok(false),
        };
        match state {
            Ok(state) => {
                if self.state == State::Between {
                    self.document = Document::Array;
                } else if is_kept {
                    out.push(byte);
                }
                self.state = state;
                Ok(true)
            }
            Err(()) => Err(self.unexpected(byte, expected, at)),
        }
    }

    /// Whether an array that is the value of the member under way holds elements.
    fn opens_array(&self) -> bool {
        match self.document {
            Document::Object | Document::Page => self.name == b"Items",
            Document::Requests => true,
            Document::Array => false,
        }
    }

    /// A byte of a name.
    fn in_name(&mut self, byte: u8, escaped: bool, at: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        // Longer ones mean nothing here.
        const LONGEST: usize = 32;
        self.check_in_string(byte, at)?;
        if self.document == Document::Object {
            out.push(byte);
        }
        self.state = match byte {
            b'"' if !escaped => State::AfterName,
            _ => State::InName { escaped: byte == b'\\' && !escaped },
        };
        if matches!(self.state, State::InName { .. }) && self.name.len() < LONGEST {
            self.name.push(byte);
        }
        Ok(())
    }

    /// Makes ready for a value that starts with `byte`.
    fn begin(&mut self, byte: u8, expected: &'static str, at: usize) -> Result<(), Fault> {
        if !(b"{[\"".contains(&byte) || is_word(byte)) {
            return Err(self.unexpected(byte, expected, at));
        }
        self.open.clear();
        (self.state, self.part) = (State::Value, if is_word(byte) { Part::Word } else { Part::Tokens });
        (self.after_word, self.gap) = (false, false);
        (self.weight, self.is_null) = (0, byte == b'n');
        self.word.clear();
        Ok(())
    }

    /// Reads on in a value; gives where it stopped: after the value, or at the end of the text.
    fn value(&mut self, text: &[u8], mut at: usize, out: &mut Vec<u8>) -> Result<usize, Fault> {
        while let Some(&byte) = text.get(at) {
            match self.part {
                Part::String => {
                    let end = memchr::memchr3(b'"', b'\\', b'\n', &text[at..]).map_or(text.len(), |end| at + end);
                    self.give(&text[at..end], out);
                    at = end;
                    let Some(&byte) = text.get(at) else { break };
                    self.check_in_string(byte, at)?;
                    self.give(&[byte], out);
                    at += 1;
                    self.part = if byte == b'"' { Part::Tokens } else { Part::Escape };
                    if byte == b'"' {
                        if self.open.is_empty() {
                            self.end_value(out, at)?;
                            return Ok(at);
                        }
                        self.look_for_requests(out);
                    }
                }
                Part::Escape => {
                    self.check_in_string(byte, at)?;
                    self.give(&[byte], out);
                    at += 1;
                    self.part = Part::String;
                }
                Part::Word if is_word(byte) => {
                    self.give(&[byte], out);
                    at += 1;
                }
                Part::Word => {
                    self.end_value(out, at)?;
                    return Ok(at);
                }
                Part::Tokens if is_blank(byte) => {
                    self.gap = true;
                    self.line += u64::from(byte == b'\n');
                    at += 1;
                }
                Part::Tokens => {
                    // Two words must not become one, which might mean something.
                    if self.gap && self.after_word && is_word(byte) {
                        self.give(b" ", out);
                    }
                    (self.gap, self.after_word) = (false, is_word(byte));
                    match byte {
                        b'"' => self.part = Part::String,
                        b'{' | b'[' if self.open.len() == LEVELS => {
                            return Err(self.unexpected(byte, "at most 1,000 levels of brackets in an element", at));
                        }
                        b'{' => self.open.push(b'}'),
                        b'[' => self.open.push(b']'),
                        b'}' | b']' if self.open.pop() != Some(byte) => {
                            let expected = if byte == b'}' { "`]` after the last element" } else { "`}` after the last member" };
                            return Err(self.unexpected(byte, expected, at));
                        }
                        _ => {}
                    }
                    self.give(&[byte], out);
                    at += 1;
                    if self.open.is_empty() && matches!(byte, b'}' | b']') {
                        self.end_value(out, at)?;
                        return Ok(at);
                    }
                }
            }
        }
        Ok(at)
    }

    /// Gives bytes of the value under way, unless it is passed over.
    fn give(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.weight += bytes.len() as u64;
        if self.part == Part::Word && self.word.len() < LONGEST_WORD {
            self.word.extend_from_slice(bytes);
        }
        if self.role != Role::Skipped {
            out.extend_from_slice(bytes);
        }
    }

    /// An object whose first array starts with a request is a request file: the request under way is its first element.
    fn look_for_requests(&mut self, out: &mut Vec<u8>) {
        let is_first = self.role == Role::Kept && self.open == b"]}";
        if is_first && matches!(&out[self.member..], b"[{\"PutRequest\"" | b"[{\"DeleteRequest\"") {
            out.drain(self.start..=self.member);
            (self.document, self.role, self.element_line) = (Document::Requests, Role::Element, self.line);
            self.open.remove(0);
        }
    }

    /// The value under way is whole.
    fn end_value(&mut self, out: &mut Vec<u8>, at: usize) -> Result<(), Fault> {
        if self.role == Role::Element {
            self.state = State::AfterElement;
            if self.document == Document::Page {
                out.push(b'}');
            }
            return self.end_element(out, at);
        }
        self.state = State::AfterMember;
        if self.part == Part::Word && self.name == b"Count" && self.weight == self.word.len() as u64 {
            self.page_count = std::str::from_utf8(&self.word).ok().and_then(|count| count.parse().ok());
        }
        // An empty key or token says that there is no more, too.
        if !self.is_null
            && self.weight > 2
            && let Some(name) = THERE_IS_MORE.into_iter().find(|name| name.as_bytes() == self.name)
        {
            self.page_more = Some(name);
        }
        Ok(())
    }

    /// The element under way is whole: its line ends.
    fn end_element(&mut self, out: &mut Vec<u8>, at: usize) -> Result<(), Fault> {
        self.check_length(out.len() - self.start, at)?;
        out.push(b'\n');
        self.elements += 1;
        Ok(())
    }

    /// Whether what is at the end of the output is the start of an element.
    fn is_in_element(&self) -> bool {
        match self.state {
            State::Between => false,
            State::Value if self.role == Role::Element => true,
            _ => self.document == Document::Object,
        }
    }

    fn check_length(&self, found: usize, at: usize) -> Result<(), Fault> {
        if found <= self.longest {
            return Ok(());
        }
        Err(self.fault(Problem::TooLong { limit: self.longest, found }, at))
    }

    /// A text in quotes must end in the line in which it starts; its line breaks are escaped.
    fn check_in_string(&self, byte: u8, at: usize) -> Result<(), Fault> {
        if byte == b'\n' { Err(self.unexpected(byte, "`\"` after a text", at)) } else { Ok(()) }
    }

    fn unexpected(&self, byte: u8, expected: &'static str, at: usize) -> Fault {
        let found = match byte {
            b'"' => "a text",
            b'{' => "`{`",
            b'}' => "`}`",
            b'[' => "`[`",
            b']' => "`]`",
            b',' => "`,`",
            b':' => "`:`",
            b'\n' => "a line break",
            _ if is_word(byte) => "a number or a word",
            _ => "what is no JSON",
        };
        self.fault(Problem::Unexpected { expected, found }, at)
    }

    /// A fault at the byte `at` of the piece under way.
    fn fault(&self, problem: Problem, at: usize) -> Fault {
        Fault {
            problem,
            byte: self.before + at as u64,
            line: self.line,
            elements: self.elements,
            element_line: self.is_in_element().then_some(self.element_line),
        }
    }
}

impl Fault {
    /// The error for the file at `location`.
    pub(super) fn into_error(self, location: &Location) -> Error {
        let Self { problem, byte, line, elements, element_line } = self;
        let message = match problem {
            Problem::Unexpected { .. } => format!("the data file has damaged JSON at byte {byte} of its text"),
            Problem::Cut { .. } => format!("the data file ends in the middle of a JSON document at byte {byte} of its text"),
            Problem::TooLong { .. } => "an element is too long to be an item".to_owned(),
        };
        let place = match element_line {
            Some(start) => format!("{}, which starts in line {start}", elements + 1),
            None => format!("after {elements}"),
        };
        let error = Error::new(Kind::Input, message).with("file", location).with("line", line).with("element", place);
        match problem {
            Problem::Unexpected { expected, found } => error
                .with("expected", expected)
                .with("found", found)
                .with("hint", "where the next element starts cannot be told from here on; mend the file, or make it again"),
            Problem::Cut { expected } => error
                .with("expected", expected)
                .with("found", "the end of the file")
                .with("hint", "it was not written whole; copy it again, or make it again"),
            Problem::TooLong { limit, found } => error
                .with("expected", format_args!("at most {limit} bytes"))
                .with("found", format_args!("{found} bytes or more"))
                .with("hint", "--max-line SIZE allows longer ones"),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether a byte may belong to a number, `true`, `false` or `null`; others are refused by the decoder, not here.
fn is_word(byte: u8) -> bool {
    !is_blank(byte) && !b"{}[],:\"".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out of a text that comes in pieces of this size, and the fault that ends it.
    fn framed(text: &str, piece: usize, longest: usize) -> (String, Option<Fault>) {
        let mut framer = Framer::new(longest);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            let mut at = 0;
            while at < piece.len() {
                match framer.read(&piece[at..], &mut out, 0) {
                    Ok(taken) => at += taken,
                    Err(fault) => return (whole_lines(&out), Some(fault)),
                }
            }
        }
        let end = framer.end().err();
        (whole_lines(&out), end)
    }

    fn whole_lines(out: &[u8]) -> String {
        let end = out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        String::from_utf8(out[..end].to_vec()).unwrap()
    }

    #[track_caller]
    fn gives(text: &str, expected: &str) {
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(framed(text, piece, 1000), (expected.to_owned(), None), "{text} in pieces of {piece}");
        }
    }

    /// The message for a fault, without the file and the hint; it is the same however the text comes.
    #[track_caller]
    fn fault(text: &str) -> String {
        let messages: Vec<_> = [1, 3, 1000]
            .map(|piece| {
                let fault = framed(text, piece, 40).1.unwrap_or_else(|| panic!("no fault in {text}"));
                let error = fault.into_error(&Location::Local("x".into()));
                let context = error.context().iter().filter(|(name, _)| !["file", "hint"].contains(name));
                std::iter::once(error.message().to_owned()).chain(context.map(|(name, text)| format!("{name}: {text}"))).collect::<Vec<_>>()
            })
            .into_iter()
            .map(|lines| lines.join("\n"))
            .collect();
        assert!(messages.windows(2).all(|two| two[0] == two[1]), "{messages:#?}");
        messages.into_iter().next().expect("there are three")
    }

    #[test]
    fn elements_of_an_array_are_given_as_they_are() {
        gives("[]", "");
        gives(" [ { \"a\" : [ 1 , { } ] } ,\n\t{} ] ", "{\"a\":[1,{}]}\n{}\n");
        gives(r#"[{"Item":{}}][{"x":"\"]\\"}]"#, "{\"Item\":{}}\n{\"x\":\"\\\"]\\\\\"}\n");
    }

    #[test]
    fn an_element_that_is_no_object_is_a_line_too() {
        gives("[1,\"two\", null ,[3, [ ]] ,-4.5e6\n]", "1\n\"two\"\nnull\n[3,[]]\n-4.5e6\n");
        gives(r#"{"Items":["a",1]}"#, "{\"Item\":\"a\"}\n{\"Item\":1}\n");
    }

    #[test]
    fn elements_of_a_page_are_items_and_its_other_members_are_passed_over() {
        gives(
            r#"{"Items":[{"a":{"S":"]}"}},{"b":{"N":"1"}}],"Count":2,"x":{"Items":[1,"]"]}}"#,
            "{\"Item\":{\"a\":{\"S\":\"]}\"}}}\n{\"Item\":{\"b\":{\"N\":\"1\"}}}\n",
        );
        gives(
            "{\n \"Count\" : 1 ,\n \"x\" : [ 1 ] ,\n \"Items\" : [ { } ] }\n{\"Items\":[]} {\"Items\":[{}]}",
            "{\"Item\":{}}\n{\"Item\":{}}\n",
        );
        gives(r#"{"Item\"s":{},"Items":[{}]}"#, "{\"Item\":{}}\n");
    }

    #[test]
    fn a_page_whose_count_is_not_that_of_its_elements_is_seen() {
        let miscounted = |text: &str| {
            let found = [1, 3, 1000].map(|piece| {
                let mut framer = Framer::new(1000);
                let mut out = Vec::new();
                for piece in text.as_bytes().chunks(piece) {
                    assert_eq!(framer.read(piece, &mut out, usize::MAX), Ok(piece.len()));
                }
                framer.miscounted().map(|page| (page.count, page.found, page.line))
            });
            assert!(found.iter().all(|other| *other == found[0]), "{text}");
            found[0]
        };
        for (text, expected) in [
            (r#"{"Items":[{},{}],"Count":2,"ScannedCount":9}"#, None),
            (r#"{"Count":2,"Items":[{},{}]}"#, None),
            (r#"{"Items":[{},{}]}"#, None),
            (r#"{"Items":[{},{}],"Count":3}"#, Some((3, 2, 1))),
            ("{\n\"Count\" : 1\n,\"Items\":[{},{}]\n}", Some((1, 2, 4))),
            ("{\"Items\":[{}],\"Count\":1}\n{\"Items\":[],\"Count\":1}\n{\"Items\":[{}],\"Count\":0}", Some((1, 0, 2))),
            (r#"{"Items":[{}],"Count":1,"LastEvaluatedKey":{"a":1}}{"Items":[{}]}"#, None),
            // The AWS CLI counts what it did not print.
            (r#"{"Items":[{}],"Count":109,"NextToken":"abc"}"#, None),
            (r#"{"Items":[{}],"Count":"two","x":{"Count":5}}"#, None),
            (r#"{"Items":[{}],"Count":100000000000000000000000000000000000000}"#, None),
        ] {
            assert_eq!(miscounted(text), expected, "{text}");
        }
    }

    #[test]
    fn elements_of_a_request_file_are_given_as_they_are() {
        gives(
            "{\"none\":[],\"a\":[{ \"PutRequest\" : {\"Item\":{}}},\n{\"DeleteRequest\":{}}],\"b\" : [ {\"PutRequest\":1}, 2 ],\"c\":\"TOTAL\"}",
            "{\"PutRequest\":{\"Item\":{}}}\n{\"DeleteRequest\":{}}\n{\"PutRequest\":1}\n2\n",
        );
        gives(r#"{"a":[{"DeleteRequest":{}}]}{"Item":{}}"#, "{\"DeleteRequest\":{}}\n{\"Item\":{}}\n");
    }

    #[test]
    fn any_other_object_is_an_element_itself() {
        gives("{}\n{ \"Item\" : { \"Items\" : [ ] } }", "{}\n{\"Item\":{\"Items\":[]}}\n");
        gives(
            r#"{"tags":["PutRequest"],"more":[{"Put":1,"PutRequest":2}],"and":[1,{"PutRequest":2}]}"#,
            "{\"tags\":[\"PutRequest\"],\"more\":[{\"Put\":1,\"PutRequest\":2}],\"and\":[1,{\"PutRequest\":2}]}\n",
        );
        gives(r#"{"a":{"b":{"PutRequest":1}},"Items":null}"#, "{\"a\":{\"b\":{\"PutRequest\":1}},\"Items\":null}\n");
    }

    #[test]
    fn words_that_blanks_keep_apart_stay_apart() {
        gives("[{\"a\": tr ue, \"b\": 1\n2}]", "{\"a\":tr ue,\"b\":1 2}\n");
    }

    #[test]
    fn a_fault_says_where_it_is_and_what_was_expected() {
        let damaged = "the data file has damaged JSON at byte";
        for (text, expected) in [
            ("[{}\n{}]", "4 of its text\nline: 2\nelement: after 1\nexpected: `,` or `]` after an element\nfound: `{`"),
            ("[{},]", "4 of its text\nline: 1\nelement: after 1\nexpected: an element\nfound: `]`"),
            ("[,", "1 of its text\nline: 1\nelement: after 0\nexpected: an element or `]`\nfound: `,`"),
            ("[tru e]", "5 of its text\nline: 1\nelement: after 1\nexpected: `,` or `]` after an element\nfound: a number or a word"),
            ("[]\n]", "3 of its text\nline: 2\nelement: after 0\nexpected: an object, an array or the end of the file\nfound: `]`"),
            (
                "[{}] x",
                "5 of its text\nline: 1\nelement: after 1\nexpected: an object, an array or the end of the file\nfound: a number or a word",
            ),
            ("{\"Items\":[{}],}", "14 of its text\nline: 1\nelement: after 1\nexpected: a name in quotes\nfound: `}`"),
            ("{\"Items\":[{}]\"x\"}", "13 of its text\nline: 1\nelement: after 1\nexpected: `,` or `}` after a value\nfound: a text"),
            ("{\"Items\" [", "9 of its text\nline: 1\nelement: 1, which starts in line 1\nexpected: `:` after a name\nfound: `[`"),
            (
                "{1",
                "1 of its text\nline: 1\nelement: 1, which starts in line 1\nexpected: a name in quotes or `}`\nfound: a number or a word",
            ),
            ("{\"a\":,", "5 of its text\nline: 1\nelement: 1, which starts in line 1\nexpected: a value\nfound: `,`"),
            (
                "[{},\n{\"a\":\n[1}",
                "13 of its text\nline: 3\nelement: 2, which starts in line 2\nexpected: `]` after the last element\nfound: `}`",
            ),
            (
                "[\n{\"a\":\"x\n\"}]",
                "9 of its text\nline: 2\nelement: 1, which starts in line 2\nexpected: `\"` after a text\nfound: a line break",
            ),
            (
                "{\"a\nb\":1}",
                "3 of its text\nline: 1\nelement: 1, which starts in line 1\nexpected: `\"` after a text\nfound: a line break",
            ),
        ] {
            assert_eq!(fault(text), format!("{damaged} {expected}"), "{text}");
        }
    }

    #[test]
    fn a_text_that_ends_too_early_is_a_fault() {
        let cut = "the data file ends in the middle of a JSON document at byte";
        for (text, expected) in [
            ("[", "1 of its text\nline: 1\nelement: after 0\nexpected: `]` after the last element\nfound: the end of the file"),
            ("[{}\n", "4 of its text\nline: 2\nelement: after 1\nexpected: `]` after the last element\nfound: the end of the file"),
            (
                "[{},\n{\"a",
                "8 of its text\nline: 2\nelement: 2, which starts in line 2\nexpected: `]` after the last element\nfound: the end of the file",
            ),
            (
                "{\"a\":{}",
                "7 of its text\nline: 1\nelement: 1, which starts in line 1\nexpected: `}` after the last member\nfound: the end of the file",
            ),
            (
                "{\"Items\":[{}]",
                "13 of its text\nline: 1\nelement: after 1\nexpected: `]` after the last element and `}` after the last member\nfound: the end of the file",
            ),
            (
                "{\"T\":[{\"PutRequest\":{}},",
                "24 of its text\nline: 1\nelement: after 1\nexpected: `]` after the last element and `}` after the last member\nfound: the end of the file",
            ),
        ] {
            assert_eq!(fault(text), format!("{cut} {expected}"), "{text}");
        }
    }

    #[test]
    fn an_element_without_end_is_refused_before_it_fills_the_memory() {
        let long = format!("[1,{{\"a\":\"{}", "x".repeat(10_000));
        let (given, fault) = framed(&long, 10, 40);
        assert_eq!(given, "1\n");
        assert!(matches!(fault, Some(Fault { problem: Problem::TooLong { limit: 40, found: 41..=50 }, elements: 1, .. })), "{fault:?}");
        let (_, fault) = framed(&format!("{{\"{}", "x".repeat(10_000)), 10, 40);
        assert!(matches!(fault, Some(Fault { problem: Problem::TooLong { .. }, .. })), "{fault:?}");
        let exact = format!("[\"{}\"]", "x".repeat(38));
        assert_eq!(framed(&exact, 1000, 40).1, None);
        assert!(framed(&exact, 1000, 39).1.is_some());
        // What is not held may be as long as it likes, but for brackets.
        let blanks = format!("[{}{{}},1] ", " \n".repeat(10_000));
        assert_eq!(framed(&blanks, 10, 40).1, None);
        let skipped = format!("{{\"Items\":[],\"{0}\":\"{0}\"}}", "x".repeat(10_000));
        assert_eq!(framed(&skipped, 10, 40).1, None);
        let deep = format!("{{\"Items\":[],\"a\":{}", "[".repeat(10_000));
        assert!(matches!(framed(&deep, 10, 40).1, Some(Fault { problem: Problem::Unexpected { .. }, byte: 1_016, .. })));
    }
}
