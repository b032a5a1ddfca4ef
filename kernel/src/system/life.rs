//! Lives: extensions come up in dependency order and go down in its reverse; a failure takes its dependents with it.
//!
//! What facts have changed is taken up in [`System::pursue`], which gives each generation its next command as soon as its
//! neighbours allow it. A new generation rises beside the one that serves and takes over only when it has started.

use super::*;

/// So many faults within the window, and a generation gives way.
const FAULTS: usize = 3;
const FAULT_WINDOW: Millis = Millis(60_000);

/// What a generation does next.
enum Move {
    Fall(Course, Option<Fault>),
    Command(C),
    Promote,
    Forget,
}

impl System {
    /// The process has begun: nothing of an earlier one is alive, but its numbers go on.
    pub(super) fn start(&mut self) {
        self.phase = Phase::Running;
        self.running.clear();
        for extension in self.extensions.values_mut() {
            *extension = Extension { generations: extension.generations, ..Extension::default() };
        }
    }

    pub(super) fn found(&mut self, found: &[FoundExtension]) {
        for found in found {
            let extension = self.extensions.entry(found.id.clone()).or_default();
            match extension.on(Course::Rising).or(extension.on(Course::Serving)) {
                Some(latest) if latest.found.digest == found.digest => extension.adopt(found),
                _ => extension.rise(found.clone(), false),
            }
        }
    }

    /// An extension that cannot be read. The generation that serves, if any, goes on.
    pub(super) fn rejected(&mut self, desk: &mut Desk, ExtensionRejected { id, fault }: &ExtensionRejected) {
        let extension = self.extensions.entry(id.clone()).or_default();
        extension.fault = Some(fault.clone());
        extension.waiting = false;
        if !extension.is_up() {
            let generation = Generation(extension.generations);
            desk.record(ExtensionStateChanged::down(id, generation, Some(fault.clone())));
        }
    }

    pub(super) fn removed(&mut self, id: &ExtensionId) {
        if let Some(extension) = self.extensions.get_mut(id) {
            extension.found = None;
            extension.fault = None;
        }
    }

    pub(super) fn report(&mut self, desk: &mut Desk, fact: &ExtensionReported, cause: Option<Seq>) -> Taken {
        let life = self.life(&fact.id, fact.generation)?;
        if life.under_way.is_none() || life.under_way != cause.map(|cause| (fact.command, cause)) {
            return unexpected("this command is not under way");
        }
        life.under_way = None;
        match &fact.outcome {
            LifecycleOutcome::Failed(fault) if life.course == Course::Rising => {
                self.send_down(desk, &fact.id, Course::Rising, Some(fault.clone()));
            }
            // What fails to stop is on its way out all the same; what failed to rise is no further than it was.
            LifecycleOutcome::Failed(_) if fact.command < C::Stop => {}
            LifecycleOutcome::Failed(_) | LifecycleOutcome::Done => life.done = Some(fact.command),
            LifecycleOutcome::Loaded { descriptors, lives } => {
                life.descriptors = descriptors.clone();
                life.lives = *lives;
                life.done = Some(fact.command);
            }
        }
        Ok(())
    }

    pub(super) fn faulted(&mut self, desk: &mut Desk, fact: &ExtensionFaulted) -> Taken {
        let serves = self.life(&fact.id, fact.generation)?.course == Course::Serving;
        let extension = self.extensions.get_mut(&fact.id);
        let Some(extension) = extension.filter(|it| serves && it.on(Course::Rising).is_none()) else {
            return Ok(());
        };
        let now = desk.clerk.now;
        extension.faults.push(now);
        extension.faults.retain(|at| now.since(*at) < FAULT_WINDOW);
        if extension.faults.len() >= FAULTS {
            let guards = extension.on(Course::Serving).is_some_and(Life::guards);
            match extension.previous.take() {
                Some(found) => extension.rise(found, true),
                // Without it, what it judges would pass unjudged: it stays, and stays closed.
                None if guards => extension.fault = Some(fact.fault.clone()),
                None => self.send_down(desk, &fact.id, Course::Serving, Some(fact.fault.clone())),
            }
        }
        Ok(())
    }

    pub(super) fn health(&mut self, desk: &mut Desk, fact: &HealthReported) -> Taken {
        let serves = self.life(&fact.id, fact.generation)?.course == Course::Serving;
        if serves && !fact.healthy {
            let message = format!("`{}` reported that it is not well", fact.id);
            let fault = Fault::new(Code::ExtensionUnhealthy, message);
            self.send_down(desk, &fact.id, Course::Serving, Some(fault));
        }
        Ok(())
    }

    /// The generation of this number, wherever it is in its life.
    fn life(&mut self, id: &ExtensionId, generation: Generation) -> Result<&mut Life, Fault> {
        let lives = self.extensions.get_mut(id).into_iter().flat_map(|extension| &mut extension.lives);
        let life = lives.into_iter().find(|life| life.reference.generation == generation);
        life.map_or_else(|| unexpected("no such generation of this extension is there"), Ok)
    }

    /// Sends the generation on this course down: in error if there is a reason. Another one may go on serving.
    fn send_down(&mut self, desk: &mut Desk, id: &ExtensionId, course: Course, fault: Option<Fault>) {
        let Some(extension) = self.extensions.get_mut(id) else { return };
        let Some(life) = extension.on_mut(course) else { return };
        life.course = Course::Leaving;
        desk.record(ExtensionStateChanged::down(id, life.reference.generation, fault.clone()));
        extension.fault = fault;
        self.stale |= course == Course::Serving;
    }

    /// Lets every generation do what its neighbours allow, until nothing moves. Whoever must fall falls first.
    pub(super) fn pursue(&mut self, desk: &mut Desk) {
        loop {
            let lives = self.extensions.values().flat_map(|extension| &extension.lives);
            let next = lives.filter_map(|life| Some((life.reference.clone(), self.next_move(life)?)));
            let mut moves: Vec<_> = next.collect();
            if moves.iter().any(|(_, next)| matches!(next, Move::Fall(..))) {
                moves.retain(|(_, next)| matches!(next, Move::Fall(..)));
            }
            if moves.is_empty() && !self.try_again() {
                break;
            }
            moves.into_iter().for_each(|(life, next)| self.make(desk, &life, next));
        }
        if self.phase == Phase::Stopping && self.extensions.values().all(|it| it.lives.is_empty()) {
            self.phase = Phase::Stopped;
            desk.record(SystemStopped {});
        }
    }

    fn next_move(&self, life: &Life) -> Option<Move> {
        let (course, found, idle) = (life.course, &life.found, life.under_way.is_none());
        let fallen = |fault: Option<Fault>| fault.map(|fault| Move::Fall(course, Some(fault)));
        let installed = self.extensions.get(&found.id).is_some_and(|it| it.found.is_some());
        let fall = match course {
            Course::Leaving => None,
            _ if self.phase != Phase::Running || !installed => Some(Move::Fall(course, None)),
            Course::Rising if idle && life.done.is_none() => fallen(self.hindrance(found)),
            Course::Rising | Course::Serving => fallen(self.lacking(found)),
        };
        match (course, life.done) {
            _ if fall.is_some() || !idle => fall,
            (Course::Serving, _) => None,
            (Course::Rising, None) => self.once_as_far(found, C::Load),
            (Course::Rising, Some(C::Load)) => self.once_as_far(found, C::Initialize),
            (Course::Rising, Some(C::Initialize)) => self.once_as_far(found, C::Start),
            (Course::Rising, Some(_)) => Some(Move::Promote),
            (Course::Leaving, None | Some(C::Destroy)) => Some(Move::Forget),
            (Course::Leaving, Some(C::Start)) if self.is_needed(&found.id) => None,
            (Course::Leaving, Some(C::Start)) => Some(Move::Command(C::Stop)),
            (Course::Leaving, Some(_)) => Some(Move::Command(C::Destroy)),
        }
    }

    /// A command on the way up, once every dependency is as far.
    fn once_as_far(&self, found: &FoundExtension, command: C) -> Option<Move> {
        let is_as_far = |life: &Life| life.course != Course::Leaving && life.done >= Some(command);
        let mut needed = found.depends_on.iter().map(|needed| self.extensions.get(needed));
        let ready = needed.all(|needed| needed.is_some_and(|it| it.lives.iter().any(is_as_far)));
        ready.then_some(Move::Command(command))
    }

    /// Whether a generation that leaves has no successor, and others that depend on it have not gone yet.
    fn is_needed(&self, id: &ExtensionId) -> bool {
        let replaced = self.extensions.get(id).is_some_and(|it| it.on(Course::Serving).is_some());
        let mut lives = self.extensions.values().flat_map(|extension| &extension.lives);
        !replaced && lives.any(|life| life.course != Course::Rising && life.found.depends_on.contains(id))
    }

    fn make(&mut self, desk: &mut Desk, life: &ExtensionRef, next: Move) {
        let extension = self.extensions.entry(life.id.clone()).or_default();
        match next {
            Move::Fall(course, fault) => {
                extension.waiting = fault.is_some();
                self.send_down(desk, &life.id, course, fault);
            }
            Move::Command(command) => {
                let commanded = self.life(&life.id, life.generation);
                commanded.into_iter().for_each(|life| life.command(desk, command));
            }
            Move::Promote => {
                self.activations += 1;
                self.stale = true;
                extension.promote(desk, self.activations);
            }
            Move::Forget => extension.lives.retain(|other| other.reference.generation != life.generation),
        }
    }

    /// Sends up again who fell for the sake of others, once nothing stands in the way.
    fn try_again(&mut self) -> bool {
        let waits = |it: &&Extension| it.waiting && it.on(Course::Rising).is_none();
        let waiting = self.extensions.values().filter(waits).filter_map(|it| it.found.clone());
        let again = waiting.filter(|found| self.phase == Phase::Running && self.hindrance(found).is_none());
        let again: Vec<FoundExtension> = again.collect();
        for found in &again {
            self.extensions.entry(found.id.clone()).or_default().rise(found.clone(), false);
        }
        !again.is_empty()
    }
}
