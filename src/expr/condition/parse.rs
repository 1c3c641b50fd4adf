//! From the tokens of a condition to its tree. Refuses what the service would refuse, and what can never hold.

use std::ops::Range;

use crate::error::nearest;
use crate::expr::SyntaxError;
use crate::expr::condition::token::{Placed, Token, in_name, mistake, tokens};
use crate::expr::condition::{Comparator, Node, Operand, order};
use crate::model::{Path, Type, Value};

/// Parentheses and NOTs within each other. The service allows 300 operators in all; the bound keeps the stack small.
const DEEPEST: usize = 200;

const KEYWORDS: [&str; 5] = ["AND", "OR", "NOT", "BETWEEN", "IN"];
const LITERALS: [&str; 3] = ["true", "false", "null"];

/// Every function with an example of its use.
const FUNCTIONS: [(&str, &str); 6] = [
    ("attribute_exists", "attribute_exists(body)"),
    ("attribute_not_exists", "attribute_not_exists(deletedAt)"),
    ("attribute_type", "attribute_type(tags, 'SS')"),
    ("begins_with", "begins_with(author, 'bot-')"),
    ("contains", "contains(tags, 'red')"),
    ("size", "size(tags) > 3"),
];

/// Parses the whole of `text`.
pub(super) fn condition(text: &str) -> Result<Node, SyntaxError> {
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, depth: 0 };
    if parser.token() == &Token::End {
        return Err(mistake(0..text.len(), "the condition is empty", "such as attribute_exists(body) AND size(tags) > 3"));
    }
    let node = parser.any()?;
    match parser.token() {
        Token::End => Ok(node),
        Token::Close => Err(mistake(parser.range(), "`)` without `(`", None)),
        Token::Comparator(_) => {
            Err(mistake(parser.range(), "a comparison cannot be compared again", "join comparisons by AND, or use BETWEEN … AND …"))
        }
        _ => Err(mistake(parser.range(), format!("expected AND, OR or the end, found {}", parser.found()), None)),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Placed>,
    /// The current token; never behind the last, which is [`Token::End`].
    at: usize,
    depth: usize,
}

/// An operand and where it stands.
type Written = (Operand, Range<usize>);

impl<'t> Parser<'t> {
    fn token(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn range(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    /// The current token as written.
    fn word(&self) -> &'t str {
        &self.text[self.range()]
    }

    /// The current token for a message.
    fn found(&self) -> String {
        match self.token() {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", self.word()),
        }
    }

    fn advance(&mut self) -> Placed {
        let placed = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        placed
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        self.token() == &Token::Word && self.word().eq_ignore_ascii_case(keyword)
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Whether the current word is followed by an opening parenthesis and is no keyword.
    fn is_call(&self) -> bool {
        self.token() == &Token::Word
            && matches!(self.tokens.get(self.at + 1), Some((Token::Open, _)))
            && !KEYWORDS.iter().any(|keyword| self.is_keyword(keyword))
    }

    fn deeper(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(mistake(self.range(), format!("more than {DEEPEST} parentheses and NOTs within each other"), None));
        }
        Ok(())
    }

    fn any(&mut self) -> Result<Node, SyntaxError> {
        let first = self.all()?;
        if !self.is_keyword("OR") {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.take_keyword("OR") {
            nodes.push(self.all()?);
        }
        Ok(Node::Any(nodes))
    }

    fn all(&mut self) -> Result<Node, SyntaxError> {
        let first = self.not()?;
        if !self.is_keyword("AND") {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.take_keyword("AND") {
            nodes.push(self.not()?);
        }
        Ok(Node::All(nodes))
    }

    fn not(&mut self) -> Result<Node, SyntaxError> {
        if !self.is_keyword("NOT") {
            return self.primary();
        }
        self.deeper()?;
        self.advance();
        let inner = self.not()?;
        self.depth -= 1;
        Ok(Node::Not(Box::new(inner)))
    }

    fn primary(&mut self) -> Result<Node, SyntaxError> {
        if self.token() == &Token::Open {
            self.deeper()?;
            let (_, open) = self.advance();
            let inner = self.any()?;
            if self.token() == &Token::End {
                return Err(mistake(open, "`(` is not closed", None));
            }
            if self.token() != &Token::Close {
                return Err(mistake(self.range(), format!("expected AND, OR or `)`, found {}", self.found()), None));
            }
            self.advance();
            self.depth -= 1;
            return Ok(inner);
        }
        if self.is_call() && self.word() != "size" {
            return self.function();
        }
        self.comparison()
    }

    /// A function that gives true or false.
    fn function(&mut self) -> Result<Node, SyntaxError> {
        let (name, name_at) = (self.word(), self.range());
        let Some((_, example)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            return Err(unknown_function(name, name_at));
        };
        let expected = if name.ends_with("exists") { 1 } else { 2 };
        let (arguments, at) = self.arguments()?;
        let wrong = |at: Range<usize>, message: String| SyntaxError { at, message, help: Some(format!("such as {example}")) };
        if arguments.len() != expected {
            let count = if expected == 1 { "one argument" } else { "two arguments" };
            return Err(wrong(at, format!("`{name}` takes {count}, found {}", arguments.len())));
        }
        let mut arguments = arguments.into_iter();
        let (Some((Operand::Path(path), path_at)), second) = (arguments.next(), arguments.next()) else {
            return Err(wrong(at, format!("`{name}` takes the path of an attribute first")));
        };
        if matches!(self.token(), Token::Comparator(_)) {
            let help = "leave the comparison out, and write NOT before the function for the opposite";
            return Err(mistake(self.range(), format!("`{name}` is true or false by itself"), help));
        }
        let Some((second, second_at)) = second else {
            return Ok(if name == "attribute_exists" { Node::Exists(path) } else { Node::NotExists(path) });
        };
        if name == "attribute_type" {
            let kind = match &second {
                Operand::Text(kind) => Type::from_descriptor(kind),
                _ => None,
            };
            let types = Type::ALL.map(Type::descriptor).join(", ");
            let kind = kind.ok_or_else(|| wrong(second_at, format!("`{name}` takes a type in single quotes, one of {types}")))?;
            return Ok(Node::HasType(path, kind));
        }
        let first = Operand::Path(path.clone());
        self.check_pair((&first, &path_at), (&second, &second_at))?;
        if name == "contains" {
            return Ok(Node::Contains(path, second));
        }
        match second {
            Operand::Path(_) | Operand::Text(_) | Operand::Bytes(_) => Ok(Node::BeginsWith(path, second)),
            _ => Err(wrong(second_at, format!("`{name}` takes a text or a binary here"))),
        }
    }

    /// From the name of a function to its closing parenthesis: the arguments, and where all of it stands.
    fn arguments(&mut self) -> Result<(Vec<Written>, Range<usize>), SyntaxError> {
        let (_, name) = self.advance();
        let (_, open) = self.advance();
        let (arguments, end) = if self.token() == &Token::Close { (Vec::new(), self.advance().1.end) } else { self.list(open)? };
        Ok((arguments, name.start..end))
    }

    /// Operands with commas between them and the parenthesis that closes the one at `open`; and the place behind it.
    fn list(&mut self, open: Range<usize>) -> Result<(Vec<Written>, usize), SyntaxError> {
        let mut operands = vec![self.operand()?];
        loop {
            match self.token() {
                Token::Comma => {
                    self.advance();
                    operands.push(self.operand()?);
                }
                Token::Close => return Ok((operands, self.advance().1.end)),
                Token::End => return Err(mistake(open, "`(` is not closed", None)),
                _ => return Err(mistake(self.range(), format!("expected `,` or `)`, found {}", self.found()), None)),
            }
        }
    }

    fn operand(&mut self) -> Result<Written, SyntaxError> {
        let at = self.range();
        let operand = match self.token() {
            Token::Text(text) => Operand::Text(text.clone()),
            Token::Number(text) => Operand::Number(text.clone()),
            Token::Bytes(bytes) => Operand::Bytes(bytes.clone()),
            Token::Word => return self.named(),
            _ => {
                let help = "an attribute, a 'text', a number, true, false, null or size(…)";
                return Err(mistake(at, format!("expected an operand, found {}", self.found()), help));
            }
        };
        self.advance();
        Ok((operand, at))
    }

    /// An operand that starts with a word: a path, a size, or a literal that has a name.
    fn named(&mut self) -> Result<Written, SyntaxError> {
        let (word, at) = (self.word(), self.range());
        if KEYWORDS.iter().any(|keyword| self.is_keyword(keyword)) {
            let help = "an attribute of this name stands in double quotes";
            return Err(mistake(at, format!("expected an operand, found {}", self.found()), help));
        }
        if self.is_call() {
            if word == "size" {
                let (arguments, at) = self.arguments()?;
                return match <[Written; 1]>::try_from(arguments) {
                    Ok([(Operand::Path(path), _)]) => Ok((Operand::Size(path), at)),
                    _ => Err(mistake(at, "`size` takes the path of one attribute", "such as size(tags) > 3")),
                };
            }
            if FUNCTIONS.iter().any(|(known, _)| *known == word) {
                return Err(mistake(at, format!("`{word}` is true or false by itself and cannot be compared"), None));
            }
            return Err(unknown_function(word, at));
        }
        let operand = match word {
            "true" => Operand::Bool(true),
            "false" => Operand::Bool(false),
            "null" => Operand::Null,
            _ if LITERALS.iter().any(|literal| word.eq_ignore_ascii_case(literal)) => {
                let help = "true, false and null are in lower case; an attribute of this name stands in double quotes";
                return Err(mistake(at, format!("`{word}` is neither a literal nor a bare name"), help));
            }
            _ => Operand::Path(Path::parse(word).map_err(|message| mistake(at.clone(), message, None))?),
        };
        self.advance();
        Ok((operand, at))
    }

    fn comparison(&mut self) -> Result<Node, SyntaxError> {
        let (left, left_at) = self.operand()?;
        let from_left = |end: usize| left_at.start..end;
        if let Token::Comparator(comparator) = *self.token() {
            self.advance();
            let (right, right_at) = self.operand()?;
            self.check_pair((&left, &left_at), (&right, &right_at))?;
            check_some_path(&left, [&right], from_left(right_at.end))?;
            if !matches!(comparator, Comparator::Equal | Comparator::NotEqual) {
                check_ordered(&left, &left_at)?;
                check_ordered(&right, &right_at)?;
            }
            return Ok(Node::Compare(left, comparator, right));
        }
        if self.take_keyword("BETWEEN") {
            let (low, low_at) = self.operand()?;
            if !self.take_keyword("AND") {
                let message = format!("expected AND between the bounds of BETWEEN, found {}", self.found());
                return Err(mistake(self.range(), message, "such as age BETWEEN 18 AND 65"));
            }
            let (high, high_at) = self.operand()?;
            check_some_path(&left, [&low, &high], from_left(high_at.end))?;
            for (bound, at) in [(&low, &low_at), (&high, &high_at)] {
                self.check_pair((&left, &left_at), (bound, at))?;
                check_ordered(bound, at)?;
            }
            check_ordered(&left, &left_at)?;
            if let (Some(low), Some(high)) = (low.literal(), high.literal()) {
                let at = low_at.start..high_at.end;
                match order(low, high) {
                    None => return Err(mistake(at, "the bounds of BETWEEN are of different types", None)),
                    Some(order) if order.is_gt() => return Err(mistake(at, "the lower bound of BETWEEN is above the upper one", None)),
                    Some(_) => {}
                }
            }
            return Ok(Node::Between(left, low, high));
        }
        if self.take_keyword("IN") {
            if self.token() != &Token::Open {
                return Err(mistake(
                    self.range(),
                    format!("expected `(` after IN, found {}", self.found()),
                    "such as state IN ('open', 'done')",
                ));
            }
            let (_, open) = self.advance();
            let (candidates, end) = self.list(open)?;
            for (candidate, at) in &candidates {
                self.check_pair((&left, &left_at), (candidate, at))?;
            }
            check_some_path(&left, candidates.iter().map(|(candidate, _)| candidate), from_left(end))?;
            return Ok(Node::In(left, candidates.into_iter().map(|(candidate, _)| candidate).collect()));
        }
        Err(self.no_comparator(&self.text[left_at.clone()], left_at))
    }

    /// What stands where a comparator was expected, with what the author may have meant.
    fn no_comparator(&self, operand: &str, operand_at: Range<usize>) -> SyntaxError {
        if !matches!(self.token(), Token::Word) {
            let message = format!("expected a comparator, BETWEEN or IN behind `{operand}`, found {}", self.found());
            let help = "attribute_exists(…) tests that an attribute is there; `= true` tests a boolean";
            let at = if self.token() == &Token::End { operand_at } else { self.range() };
            return mistake(at, message, help);
        }
        let help = match self.word().to_ascii_uppercase().as_str() {
            "NOT" => Some("NOT stands before the operand: NOT state IN ('open')"),
            "IS" => Some("attribute_not_exists(…) tests that an attribute is missing; `= null` that it is of type NULL"),
            "LIKE" => Some("begins_with(…) and contains(…) look into a text"),
            _ => None,
        };
        mistake(self.range(), format!("expected a comparator, BETWEEN or IN behind `{operand}`, found {}", self.found()), help)
    }

    /// Checks two operands that are compared in any way.
    fn check_pair(&self, left: (&Operand, &Range<usize>), right: (&Operand, &Range<usize>)) -> Result<(), SyntaxError> {
        let ((left, left_at), (right, right_at)) = (left, right);
        let written = &self.text[right_at.clone()];
        if let Operand::Path(path) = right
            && path.is_top_level()
            && written.starts_with('"')
            && !matches!(left, Operand::Path(path) if self.text[left_at.clone()].starts_with('"') && needs_quotes(path.top()))
        {
            // Most people who write `author = "bot"` mean a text, and as an attribute it would hardly ever hold.
            let help = "texts stand in single quotes; to compare with an attribute, write its name bare, or put it on the left";
            return Err(mistake(right_at.clone(), format!("{written} is an attribute's name, since it is in double quotes"), help));
        }
        if left == right && left.literal().is_none() {
            return Err(mistake(left_at.start..right_at.end, format!("`{written}` is compared with itself"), None));
        }
        let size_and_other = |one: &Operand, other: &Operand| {
            matches!(one, Operand::Size(_)) && other.literal().is_some_and(|value| !matches!(value, Value::N(_)))
        };
        if size_and_other(left, right) || size_and_other(right, left) {
            return Err(mistake(left_at.start..right_at.end, "`size` is a number and is compared with none", "such as size(tags) > 3"));
        }
        Ok(())
    }
}

fn unknown_function(name: &str, at: Range<usize>) -> SyntaxError {
    let known = || FUNCTIONS.iter().map(|(known, _)| *known);
    let lower = name.to_lowercase();
    let help = if known().any(|function| function == lower) {
        format!("functions are in lower case: {lower}")
    } else if let Some(near) = nearest(name, known()) {
        format!("did you mean `{near}`?")
    } else {
        format!("known functions: {}", known().collect::<Vec<_>>().join(", "))
    };
    SyntaxError { at, message: format!("unknown function `{name}`"), help: Some(help) }
}

/// Whether `name` can be written in double quotes only.
fn needs_quotes(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    !starts || !name.chars().all(in_name) || KEYWORDS.iter().chain(&LITERALS).any(|word| name.eq_ignore_ascii_case(word))
}

/// Literals alone give the same answer for every item.
fn check_some_path<'o>(left: &Operand, others: impl IntoIterator<Item = &'o Operand>, at: Range<usize>) -> Result<(), SyntaxError> {
    if left.literal().is_some() && others.into_iter().all(|other| other.literal().is_some()) {
        return Err(mistake(
            at,
            "literals are compared with each other; one operand must be an attribute",
            "a name stands without single quotes",
        ));
    }
    Ok(())
}

/// True, false and null have no order.
fn check_ordered(operand: &Operand, at: &Range<usize>) -> Result<(), SyntaxError> {
    match operand {
        Operand::Bool(_) | Operand::Null => Err(mistake(at.clone(), "true, false and null have no order", "compare them by = or <>")),
        _ => Ok(()),
    }
}
