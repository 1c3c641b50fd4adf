//! The queue of puts: what is sent next, what is sent again and when, and when the run must end.
//!
//! Puts go in turn by partition key, and where the rate is limited, as fast as it says. One task owns the queue; requests are tasks of their own that only carry bytes. Puts that the service left unprocessed go
//! back into the queue and travel with others, so that a few throttled keys do not fill the requests of the rest.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::Poll;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use rustc_hash::FxHashSet;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::aws::pauses::Pauses;
use crate::error::{Error, Kind, Reason, Result, Stage};
use crate::sink::batch_write::condition::Condition;
use crate::sink::batch_write::cost::Units;
use crate::sink::batch_write::fresh::{Fresh, Next};
use crate::sink::batch_write::rate::Rate;
use crate::sink::batch_write::request::{Failure, Outcome, ServiceTable, body, send_batch, send_put};
use crate::sink::batch_write::undo_log::{Entry, UndoLog};
use crate::sink::batch_write::{Limits, TablePayload};
use crate::sink::put_requests::{BYTES, PUTS};
use crate::sink::{LateReject, Traffic, Written};

/// The first pause before a put is sent again; it doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(20);

/// Throttling lowers the number of requests at most once in this time, since requests that are under way are throttled together.
const CALM: Duration = Duration::from_millis(100);

/// A request of more bytes than this that takes too long is sent in halves: the way may be too slow for it.
const LARGE: u64 = 1 << 20;

/// How many conditional puts may be under way for each request that may be: each is one of its own, and they are small.
const ALONE: usize = 4;

/// Where puts go, and what holds for all of them.
pub(super) struct Target {
    pub(super) client: Client,
    /// By [`TableId`](crate::model::TableId).
    pub(super) tables: Arc<[ServiceTable]>,
    pub(super) place: String,
    pub(super) limits: Limits,
    pub(super) condition: Condition,
    /// `None` where the rate is not limited.
    pub(super) rate: Option<Arc<Mutex<Rate>>>,
    /// Counts the puts that are done.
    pub(super) taken: Arc<AtomicU64>,
    /// Where what puts replace is written down, if it is.
    pub(super) undo: Option<UndoLog>,
}

impl Target {
    fn rate(&self) -> Option<MutexGuard<'_, Rate>> {
        // The state is plain numbers, good after a panic too.
        self.rate.as_ref().map(|rate| rate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The most puts in a request.
    fn puts(&self) -> usize {
        if self.condition == Condition::None { PUTS } else { 1 }
    }

    /// The most requests under way.
    fn most(&self) -> f64 {
        let each = if self.condition == Condition::None { 1 } else { ALONE };
        f64::from(u16::try_from(self.limits.requests.max(1).saturating_mul(each)).unwrap_or(u16::MAX))
    }

    fn action(&self) -> &'static str {
        if self.condition == Condition::None { "dynamodb:BatchWriteItem" } else { "dynamodb:PutItem" }
    }

    /// Sends a request once; gives its size too.
    async fn send(&self, puts: &mut [Put]) -> (u64, Outcome) {
        let table = &self.tables[puts[0].table()];
        if let Some(undo) = &self.undo {
            let new: Vec<_> = puts.iter().filter(|put| !put.logged).map(Put::entry).collect();
            if let Err(error) = undo.record(table, &new).await {
                return (0, Outcome::Unlogged(error));
            }
            for put in &mut *puts {
                put.logged = true;
            }
        }
        if self.condition == Condition::None {
            let body = body(table, puts.iter().map(Put::json));
            (body.len() as u64, send_batch(&self.client, table, body, puts.iter().map(Put::key)).await)
        } else {
            let at = puts[0].at();
            let TablePayload { puts, known, .. } = &puts[0].chunk.payload;
            let body = self.condition.body(table, puts.item(at), known.value(at));
            (body.len() as u64, send_put(&self.client, table, body, known.hash(at)).await)
        }
    }
}

/// Puts of one table and one chunk, with the room they take until the last of them is done.
#[derive(Debug)]
pub(super) struct Chunk {
    payload: TablePayload,
    _room: OwnedSemaphorePermit,
}

impl Chunk {
    pub(super) fn new(payload: TablePayload, room: OwnedSemaphorePermit) -> Self {
        Self { payload, _room: room }
    }
}

/// A put on its way: its chunk and its place there.
#[derive(Clone, Debug)]
struct Put {
    chunk: Arc<Chunk>,
    at: u32,
    attempts: u32,
    /// What it replaces is in the undo log.
    logged: bool,
}

impl Put {
    fn at(&self) -> usize {
        self.at as usize
    }

    fn json(&self) -> &[u8] {
        self.chunk.payload.puts.json(self.at())
    }

    fn key(&self) -> &[u8] {
        self.chunk.payload.puts.key(self.at())
    }

    fn hash(&self) -> u64 {
        self.chunk.payload.hashes[self.at()]
    }

    fn table(&self) -> usize {
        self.chunk.payload.table.index()
    }

    fn dataset(&self) -> u32 {
        self.chunk.payload.puts.put(self.at()).dataset.0
    }

    fn entry(&self) -> Entry<'_> {
        self.chunk.payload.to_log.entry(self.at(), self.key())
    }

    fn units(&self) -> Units {
        self.chunk.payload.costs.units(self.at())
    }

    /// When the put may go; the time is taken for it.
    fn slot(&self, rate: &mut Rate, now: Instant) -> Instant {
        rate.slot(self.chunk.payload.costs.loads(self.at()), self.units().item, now)
    }
}

/// Puts of one table that wait for their next attempt.
#[derive(Debug)]
struct Waiting {
    until: Instant,
    puts: VecDeque<Put>,
}

/// What a request gives back.
#[derive(Debug)]
struct Answer {
    puts: Vec<Put>,
    bytes: u64,
    outcome: Outcome,
}

/// The queue.
pub(super) struct Queue {
    target: Arc<Target>,
    refused: mpsc::Sender<LateReject>,
    /// Says when the queue should end soon.
    stopping: watch::Receiver<bool>,
    /// Puts that were never sent, by table.
    fresh: Vec<Fresh<Put>>,
    /// Puts to be sent again, by table.
    waiting: Vec<Vec<Waiting>>,
    /// Halves of requests that were refused or too slow; each is sent by itself, until one item alone is the reason.
    parts: VecDeque<Vec<Put>>,
    /// A request that waits for its write units, and when it may have them.
    held: Option<(Instant, Vec<Put>)>,
    /// Hashes of the keys that are under way or wait for another attempt. A put whose key is among them waits, so puts of one
    /// key reach the service in order; that two keys may share a hash costs a wait and nothing else.
    busy: FxHashSet<u64>,
    /// The table that is looked at first next time, so that no table starves the others.
    turn: usize,
    requests: JoinSet<Answer>,
    /// How many requests may be under way; lowered by throttling, raised by success.
    allowed: f64,
    lowered: Option<Instant>,
    /// Since when the service gave no usable answer.
    silent: Option<Instant>,
    pauses: Pauses,
    written: Written,
    traffic: Traffic,
    /// When the first request was sent.
    started: Option<Instant>,
}

/// What the queue waits for.
enum Event {
    Chunk(Arc<Chunk>),
    NoMoreChunks,
    Answer(std::result::Result<Answer, tokio::task::JoinError>),
}

impl Queue {
    pub(super) fn new(target: Target, refused: mpsc::Sender<LateReject>, stopping: watch::Receiver<bool>) -> Self {
        let (fresh, waiting) = target.tables.iter().map(|_| (Fresh::default(), Vec::new())).unzip();
        let allowed = target.most();
        Self {
            target: Arc::new(target),
            refused,
            stopping,
            fresh,
            waiting,
            parts: VecDeque::new(),
            held: None,
            busy: FxHashSet::default(),
            turn: 0,
            requests: JoinSet::new(),
            allowed,
            lowered: None,
            silent: None,
            pauses: Pauses::new(FIRST_PAUSE, LAST_PAUSE),
            written: Written::default(),
            traffic: Traffic::default(),
            started: None,
        }
    }

    /// Runs until no chunk comes any more and every put is acknowledged or refused.
    ///
    /// # Errors
    /// Whatever ends the run; kind `Interrupted` when it was asked to stop, once what was under way has its answer.
    pub(super) async fn run(self, chunks: UnboundedReceiver<Arc<Chunk>>) -> Result<Written> {
        let mut stopping = self.stopping.clone();
        let mut queue = self;
        let ended = {
            let mut work = pin!(queue.work(chunks));
            let mut asked = pin!(stopping.wait_for(|asked| *asked));
            // Once the sink is gone, nobody asks for anything any more.
            let mut alone = false;
            poll_fn(|context| {
                if !alone && let Poll::Ready(answer) = asked.as_mut().poll(context) {
                    match answer {
                        Ok(_) => return Poll::Ready(None),
                        Err(_) => alone = true,
                    }
                }
                work.as_mut().poll(context).map(Some)
            })
            .await
        };
        if let Some(ended) = ended {
            return ended.map(|()| queue.written());
        }
        while let Some(answer) = queue.requests.join_next().await {
            answer.map_err(|cause| Error::new(Kind::Bug, "a request broke off").caused_by(cause))?;
        }
        Err(Error::new(Kind::Interrupted, "stopped as asked"))
    }

    /// Does the work of [`run`](Self::run).
    async fn work(&mut self, mut chunks: UnboundedReceiver<Arc<Chunk>>) -> Result<()> {
        let mut open = true;
        loop {
            let now = Instant::now();
            while self.may_send() {
                let held = self.held.take().map(|(_, puts)| puts);
                let Some(puts) = held.or_else(|| self.next(now, open)) else { break };
                match self.pay(&puts, now) {
                    Ok(()) => self.send(puts),
                    Err(until) => {
                        self.held = Some((until, puts));
                        break;
                    }
                }
            }
            if !open && self.is_empty() {
                return Ok(());
            }
            // Without a free request nothing can be sent when its pause is over.
            let due = self.due().filter(|_| self.may_send());
            let requests = &mut self.requests;
            let event = poll_fn(|context| {
                if let Poll::Ready(Some(answer)) = requests.poll_join_next(context) {
                    return Poll::Ready(Event::Answer(answer));
                }
                if open && let Poll::Ready(chunk) = chunks.poll_recv(context) {
                    return Poll::Ready(chunk.map_or(Event::NoMoreChunks, Event::Chunk));
                }
                Poll::Pending
            });
            let event = match due {
                Some(due) => match tokio::time::timeout_at(due, event).await {
                    Ok(event) => event,
                    Err(_) => continue,
                },
                None => event.await,
            };
            match event {
                Event::Chunk(chunk) => {
                    let TablePayload { table, puts, costs, .. } = &chunk.payload;
                    for (at, place) in (0..puts.len()).zip(0..) {
                        self.fresh[table.index()]
                            .push(costs.partition(at), Put { chunk: Arc::clone(&chunk), at: place, attempts: 0, logged: false });
                    }
                }
                Event::NoMoreChunks => open = false,
                Event::Answer(Ok(answer)) => self.take(answer)?,
                Event::Answer(Err(cause)) => return Err(Error::new(Kind::Bug, "a request broke off").caused_by(cause)),
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number lies between 1 and 65,535")]
    fn allowed(&self) -> usize {
        self.allowed as usize
    }

    fn may_send(&self) -> bool {
        self.requests.len() < self.allowed()
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty()
            && self.parts.is_empty()
            && self.held.is_none()
            && self.fresh.iter().all(|fresh| fresh.len() == 0)
            && self.waiting.iter().all(Vec::is_empty)
    }

    /// When something can be sent that cannot be sent now. A request that is held back lets nothing else pass.
    fn due(&self) -> Option<Instant> {
        if let Some((until, _)) = &self.held {
            return Some(*until);
        }
        let again = self.waiting.iter().flatten().map(|waiting| waiting.until).min();
        let fresh = self.fresh.iter().filter_map(Fresh::wakes).min();
        again.into_iter().chain(fresh).min()
    }

    /// Takes the write units of a request, or says when it can have them.
    fn pay(&self, puts: &[Put], now: Instant) -> std::result::Result<(), Instant> {
        let Some(mut rate) = self.target.rate() else { return Ok(()) };
        let cost = rate.cost(puts[0].table(), estimated(puts));
        rate.take(cost, now)
    }

    /// The puts of the next request. A request that is not full is held back while others are under way and more may come.
    fn next(&mut self, now: Instant, open: bool) -> Option<Vec<Put>> {
        if let Some(part) = self.parts.pop_front() {
            return Some(part);
        }
        let most = self.target.puts();
        let idle = !open || self.requests.is_empty();
        let target = Arc::clone(&self.target);
        let mut rate = target.rate();
        let bucket = rate.as_ref().map(|rate| rate.bucket(now));
        for step in 0..self.target.tables.len() {
            let table = (self.turn + step) % self.target.tables.len();
            let mut puts = Vec::new();
            // A name costs at most 255 bytes, well within the headroom of the limit.
            let mut bytes = 0;
            let mut cost = 0.0;
            let each = rate.as_ref().map_or(1.0, |rate| rate.cost(table, 1.0));
            // One put alone always fits, since larger ones are refused when they are encoded.
            let fits = |count: usize, bytes: usize, cost: f64, put: &Put| {
                count == 0
                    || count < most
                        && bytes + put.json().len() < BYTES - 1024
                        && bucket.is_none_or(|bucket| cost + f64::from(put.units().all) * each <= bucket)
            };
            for waiting in self.waiting[table].iter_mut().filter(|waiting| waiting.until <= now) {
                while let Some(put) = waiting.puts.pop_front_if(|put| fits(puts.len(), bytes, cost, put)) {
                    bytes += put.json().len() + 1;
                    cost += f64::from(put.units().all) * each;
                    if let Some(rate) = rate.as_mut().filter(|rate| rate.paces()) {
                        // It loads its partition once more, and others wait for it.
                        put.slot(rate, now);
                    }
                    puts.push(put);
                }
            }
            self.waiting[table].retain(|waiting| !waiting.puts.is_empty());
            let fresh = &mut self.fresh[table];
            fresh.wake(now);
            if idle || !puts.is_empty() || fresh.len() >= most {
                let busy = &mut self.busy;
                while let Some(put) = fresh.pop(now, |put, waited| {
                    if busy.contains(&put.hash()) {
                        return Next::Parked;
                    }
                    if !fits(puts.len(), bytes, cost, put) {
                        return Next::NotNow;
                    }
                    match rate.as_mut().filter(|rate| rate.paces() && !waited).map(|rate| put.slot(rate, now)) {
                        Some(slot) if slot > now => Next::Sleeps(slot),
                        _ => Next::Goes,
                    }
                }) {
                    busy.insert(put.hash());
                    bytes += put.json().len() + 1;
                    cost += f64::from(put.units().all) * each;
                    puts.push(put);
                }
            }
            if !puts.is_empty() {
                self.turn = table + 1;
                return Some(puts);
            }
        }
        None
    }

    fn send(&mut self, puts: Vec<Put>) {
        self.started.get_or_insert_with(Instant::now);
        self.traffic.requests += 1;
        self.traffic.puts += puts.len() as u64;
        let target = Arc::clone(&self.target);
        self.requests.spawn(async move {
            let mut puts = puts;
            let (bytes, outcome) = target.send(&mut puts).await;
            Answer { puts, bytes, outcome }
        });
    }

    /// Acts on an answer.
    fn take(&mut self, answer: Answer) -> Result<()> {
        let Answer { puts, bytes, outcome } = answer;
        match outcome {
            Outcome::Done { left, units } => {
                self.silent = None;
                self.written.bytes += bytes;
                if left.is_empty() {
                    self.eased();
                } else {
                    self.too_much();
                }
                let mut left = left.into_iter().peekable();
                let (mut done, mut again) = (Vec::with_capacity(puts.len()), Vec::new());
                for (at, put) in puts.into_iter().enumerate() {
                    if left.next_if_eq(&at).is_some() { again.push(put) } else { done.push(put) }
                }
                self.count_units(&done, units);
                for put in done {
                    self.free(&put);
                    *self.written.items.entry(put.dataset()).or_default() += 1;
                }
                self.send_again(again);
            }
            Outcome::Kept => {
                self.silent = None;
                self.eased();
                self.count_units(&puts, None);
                for put in puts {
                    self.free(&put);
                    *self.written.kept.entry(put.dataset()).or_default() += 1;
                }
            }
            Outcome::Throttled => {
                self.silent = None;
                self.too_much();
                self.send_again(puts);
            }
            Outcome::Failed(failure) => {
                self.traffic.failed += 1;
                let now = Instant::now();
                let since = *self.silent.get_or_insert(now);
                if now - since >= self.target.limits.patience {
                    let seconds = (now - since).as_secs();
                    return Err(self
                        .error(Kind::Unavailable, "the service gives no usable answer", &puts, failure)
                        .with("for", format_args!("{seconds} s")));
                }
                self.slow_down();
                if failure.late && bytes > LARGE && puts.len() > 1 {
                    self.halve(puts);
                } else {
                    self.send_again(puts);
                }
            }
            Outcome::Refused(why) => {
                self.silent = None;
                self.refuse(puts, &why);
            }
            Outcome::Unlogged(error) => return Err(error),
            Outcome::Fatal(failure) => return Err(self.error(Kind::Service, "the service refuses to write", &puts, failure)),
        }
        Ok(())
    }

    fn written(self) -> Written {
        let seconds = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        Written { traffic: Some(Traffic { seconds, ..self.traffic }), ..self.written }
    }

    /// Counts the write units of puts that were done: those that the service counted, else what is estimated.
    fn count_units(&mut self, puts: &[Put], counted: Option<f64>) {
        let Some(first) = puts.first() else { return };
        let estimated = estimated(puts);
        // No put is for less than a unit, so a smaller count is none.
        let counted = counted.filter(|counted| *counted >= u32::try_from(puts.len()).map_or(f64::MAX, f64::from));
        self.traffic.write_units += counted.unwrap_or(estimated);
        if let (Some(mut rate), Some(counted)) = (self.target.rate(), counted) {
            rate.learn(first.table(), estimated, counted);
        }
    }

    /// The put is done, one way or another; the next one of its key may go.
    fn free(&mut self, put: &Put) {
        self.target.taken.fetch_add(1, Ordering::Relaxed);
        self.busy.remove(&put.hash());
        self.fresh[put.table()].unpark();
    }

    fn eased(&mut self) {
        self.allowed = (self.allowed + 1.0 / self.allowed).min(self.target.most());
    }

    /// The service said that it is too much.
    fn too_much(&mut self) {
        self.traffic.throttled += 1;
        self.slow_down();
        if let Some(mut rate) = self.target.rate() {
            rate.throttled(Instant::now());
        }
    }

    /// Lets fewer requests be under way.
    fn slow_down(&mut self) {
        let now = Instant::now();
        if self.lowered.is_none_or(|lowered| now - lowered >= CALM) {
            self.allowed = (self.allowed / 2.0).max(1.0);
            self.lowered = Some(now);
        }
    }

    /// Puts go back into the queue, after a pause of random length that may be the longer the more attempts there were.
    fn send_again(&mut self, mut puts: Vec<Put>) {
        let Some(first) = puts.first() else { return };
        let table = first.table();
        let attempts = puts.iter().map(|put| put.attempts).max().unwrap_or(0);
        self.traffic.sent_again += puts.len() as u64;
        let until = Instant::now() + self.pauses.after(attempts);
        for put in &mut puts {
            put.attempts += 1;
        }
        self.waiting[table].push(Waiting { until, puts: puts.into() });
    }

    /// Halves a refused request; a single put is refused for good.
    fn refuse(&mut self, puts: Vec<Put>, why: &str) {
        if puts.len() > 1 {
            return self.halve(puts);
        }
        for put in puts {
            self.free(&put);
            *self.written.refused.entry(put.dataset()).or_default() += 1;
            let TablePayload { puts, sources, source, .. } = &put.chunk.payload;
            let known = puts.put(put.at());
            let late = LateReject {
                origin: known.origin,
                entity: known.entity,
                dataset: known.dataset,
                reason: Reason::new(Stage::Write, "refused", format!("the service refused the item: {why}")),
                source: sources[source[put.at()].clone()].to_vec(),
            };
            // A writer that is gone belongs to a run that ends.
            let _ = self.refused.send(late);
        }
    }

    fn halve(&mut self, mut puts: Vec<Put>) {
        self.traffic.sent_again += puts.len() as u64;
        let second = puts.split_off(puts.len() / 2);
        self.parts.extend([puts, second]);
    }

    fn error(&self, kind: Kind, message: &str, puts: &[Put], failure: Failure) -> Error {
        let table = puts.first().map_or("", |put| &self.target.tables[put.table()].name);
        let error = Error::new(kind, message)
            .with("action", self.target.action())
            .with("table", table)
            .with("at", &self.target.place)
            .with("found", failure.what);
        match failure.cause {
            Some(cause) => error.caused_by(cause),
            None => error,
        }
    }
}

/// The write units of puts before the service has said anything.
fn estimated(puts: &[Put]) -> f64 {
    puts.iter().map(|put| f64::from(put.units().all)).sum()
}
