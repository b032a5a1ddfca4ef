//! Lives: extensions come up in dependency order and go down in its reverse; a failure takes its dependents with it.
//!
//! What facts have changed is taken up in [`System::pursue`], which gives each generation its next command as soon as its
//! neighbours allow it. A new generation rises beside the one that serves and takes over only when it has started.

use super::*;

/// What a generation does next.
enum Move {
    Fall(Course, Option<Fault>),
    Command(C),
    Promote,
    Forget,
}

/// The frame of a generation that is in this state from now on.
pub(super) fn state_changed(
    id: &ExtensionId,
    generation: Generation,
    state: ExtensionState,
    fault: Option<Fault>,
) -> ExtensionStateChanged {
    ExtensionStateChanged { id: id.clone(), generation, state, fault, again: None }
}

impl System {
    /// The process has begun: nothing of an earlier one is alive, but its numbers go on. What was on its way up when an earlier one
    /// died may be why.
    pub(super) fn start(&mut self) {
        let died = std::mem::replace(&mut self.phase, Phase::Running) == Phase::Running;
        self.running.clear();
        for extension in self.extensions.values_mut() {
            let rising = extension.on(Course::Rising).filter(|life| died && life.under_way.is_some());
            let deaths =
                rising.map_or(extension.deaths, |life| extension.deaths.with_crash_of(life.found.digest));
            let (generations, judging) = (extension.generations, extension.judging.take());
            *extension = Extension { generations, deaths, judging, ..Extension::default() };
        }
    }

    pub(super) fn found(&mut self, desk: &mut StepRecorder, found: &[FoundExtension]) {
        for found in found {
            let extension = self.extensions.entry(found.id.clone()).or_default();
            let latest = extension.on(Course::Rising).or(extension.on(Course::Serving));
            match (latest, extension.deaths.quarantine(found.digest)) {
                (Some(latest), _) if latest.found.digest == found.digest => extension.adopt(found),
                (None, Some(fault)) => {
                    extension.adopt(found);
                    self.rejected(desk, &ExtensionRejected { id: found.id.clone(), fault });
                }
                _ => {
                    extension.returns = RestartBackoff::default();
                    extension.rise(found.clone(), false);
                }
            }
        }
    }

    /// Someone wants an extension sent up again that is down, whatever has happened to it.
    pub(super) fn retried(&mut self, id: &ExtensionId) -> Accepted {
        let Some(extension) = self.extensions.get_mut(id).filter(|it| !it.is_up()) else {
            return unexpected("no such extension is down");
        };
        (extension.deaths, extension.returns) = (CrashCounter::default(), RestartBackoff::default());
        extension.come_back();
        Ok(())
    }

    /// The pause after an extension went down is over.
    pub(super) fn timer(&mut self, timer: Seq) -> Accepted {
        let extension = self.extensions.values_mut().find(|it| it.timer == Some(timer));
        extension.map(Extension::come_back).map_or_else(|| unexpected("nobody set this timer"), Ok)
    }

    /// An extension that cannot be read. The generation that serves, if any, goes on.
    pub(super) fn rejected(
        &mut self,
        desk: &mut StepRecorder,
        ExtensionRejected { id, fault }: &ExtensionRejected,
    ) {
        let extension = self.extensions.entry(id.clone()).or_default();
        extension.fault = Some(fault.clone());
        extension.waiting = false;
        if !extension.is_up() {
            let generation = Generation(extension.generations);
            desk.record(state_changed(id, generation, ExtensionState::Error, Some(fault.clone())));
        }
    }

    pub(super) fn removed(&mut self, id: &ExtensionId) {
        if let Some(extension) = self.extensions.get_mut(id) {
            extension.found = None;
            extension.fault = None;
            extension.judging = None;
        }
    }

    pub(super) fn report(
        &mut self,
        desk: &mut StepRecorder,
        fact: &ExtensionReported,
        cause: Option<Seq>,
    ) -> Accepted {
        let life = self.life(&fact.id, fact.generation)?;
        if life.under_way.is_none() || life.under_way != cause.map(|cause| (fact.command, cause)) {
            return unexpected("this command is not under way");
        }
        life.under_way = None;
        match &fact.outcome {
            LifecycleOutcome::Failed(fault) if life.course != Course::Leaving && fact.command < C::Stop => {
                let course = life.course;
                self.send_down(desk, &fact.id, course, Some(fault.clone()));
            }
            // What fails to stop is on its way out all the same; what failed to rise is no further than it was.
            LifecycleOutcome::Failed(_) if fact.command < C::Stop => {}
            LifecycleOutcome::Failed(_) | LifecycleOutcome::Done => life.done = Some(fact.command),
            LifecycleOutcome::Loaded { descriptors, lives, alone } => {
                life.descriptors = descriptors.clone();
                (life.lives, life.alone) = (*lives, *alone);
                life.done = Some(fact.command);
                let extension = self.extensions.get_mut(&fact.id);
                extension.into_iter().for_each(|it| it.learn_judging(Course::Rising));
            }
        }
        Ok(())
    }

    pub(super) fn faulted(&mut self, desk: &mut StepRecorder, fact: &ExtensionFaulted) -> Accepted {
        let serves = self.life(&fact.id, fact.generation)?.course == Course::Serving;
        let extension = self.extensions.get_mut(&fact.id);
        let Some(extension) = extension.filter(|it| serves && it.on(Course::Rising).is_none()) else {
            return Ok(());
        };
        if extension.faults.add(desk.now()) {
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

    pub(super) fn health(&mut self, desk: &mut StepRecorder, fact: &HealthReported) -> Accepted {
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

    /// Sends the generation on this course down: in error if there is a reason. Another one may go on serving. One that is
    /// not well is sent up again after a pause.
    fn send_down(&mut self, desk: &mut StepRecorder, id: &ExtensionId, course: Course, fault: Option<Fault>) {
        let Some(extension) = self.extensions.get_mut(id) else { return };
        let Some(life) = extension.on_mut(course) else { return };
        life.course = Course::Leaving;
        let state = if fault.is_some() { ExtensionState::Error } else { ExtensionState::Inactive };
        let mut down = state_changed(id, life.reference.generation, state, fault.clone());
        let unwell = fault.as_ref().is_some_and(|fault| fault.code == Code::ExtensionUnhealthy);
        down.again = unwell.then(|| extension.returns.next(desk.now())).flatten();
        extension.fault = fault;
        self.stale |= course == Course::Serving;
        let (again, decided_by) = (down.again, desk.record(down));
        extension.timer = again.map(|_| decided_by);
        desk.act(again.map(|at| Act::SetTimer { decided_by, at }));
    }

    /// Lets every generation do what its neighbours allow, until nothing moves. Whoever must fall falls first.
    pub(super) fn pursue(&mut self, desk: &mut StepRecorder) {
        loop {
            let lives = self.extensions.values().flat_map(|extension| &extension.lives);
            let next = lives.filter_map(|life| Some((life.reference.clone(), self.next_move(life)?)));
            let mut moves: Vec<_> = next.collect();
            if moves.iter().any(|(_, next)| matches!(next, Move::Fall(..))) {
                moves.retain(|(_, next)| matches!(next, Move::Fall(..)));
            }
            self.one_suspect_at_a_time(&mut moves);
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
            Course::Rising if idle && life.done.is_none() => fallen(self.blocked_by(found)),
            Course::Rising | Course::Serving => fallen(self.missing_dependency(found)),
        };
        match (course, life.done) {
            _ if fall.is_some() || !idle => fall,
            (Course::Serving, Some(C::Stop)) if !self.makes_way(life) => Some(Move::Command(C::Start)),
            (Course::Serving, Some(C::Start)) if self.makes_way(life) => Some(Move::Command(C::Stop)),
            (Course::Serving, _) => None,
            (Course::Rising, Some(C::Initialize)) if self.waits_for_way(life) => None,
            (Course::Rising, None) => self.once_as_far(found, C::Load),
            (Course::Rising, Some(C::Load)) => self.once_as_far(found, C::Initialize),
            (Course::Rising, Some(C::Initialize)) => self.once_as_far(found, C::Start),
            (Course::Rising, Some(_)) => Some(Move::Promote),
            (Course::Leaving, None | Some(C::Destroy)) => Some(Move::Forget),
            (Course::Leaving, Some(C::Start)) if self.is_needed(&found.id) || self.stops_later(life) => None,
            (Course::Leaving, Some(C::Start)) => Some(Move::Command(C::Stop)),
            (Course::Leaving, Some(_)) => Some(Move::Command(C::Destroy)),
        }
    }

    /// Whether a generation that serves has to stop so that the next one can start.
    fn makes_way(&self, life: &Life) -> bool {
        let rising = self.extensions.get(&life.found.id).and_then(|it| it.on(Course::Rising));
        rising.is_some_and(|next| next.alone && next.done >= Some(C::Initialize))
    }

    /// Whether a generation that could start has to wait until the one before has stopped.
    fn waits_for_way(&self, life: &Life) -> bool {
        let serving = self.extensions.get(&life.found.id).and_then(|it| it.on(Course::Serving));
        life.alone && serving.is_some_and(|old| old.done != Some(C::Stop))
    }

    /// Extensions that were on their way up when the process died come up after all others, and one at a time: if it dies again, it
    /// is plain which one it was.
    fn one_suspect_at_a_time(&self, moves: &mut Vec<(Arc<ExtensionRef>, Move)>) {
        let suspect = |id: &ExtensionId| self.extensions.get(id).is_some_and(|it| it.deaths.any());
        let held = |(life, next): &(Arc<ExtensionRef>, Move)| {
            matches!(next, Move::Command(C::Load | C::Initialize | C::Start)) && suspect(&life.id)
        };
        let mut lives = self.extensions.values().flat_map(|it| &it.lives);
        let mut free = moves.iter().all(held) && lives.all(|life| life.under_way.is_none());
        moves.retain(|next| !held(next) || std::mem::take(&mut free));
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

    /// Everything is to stop, in the reverse of the order in which it came up, as far as dependencies that have changed since allow.
    pub(super) fn line_up(&mut self) {
        self.phase = Phase::Stopping;
        let serving = self.extensions.values_mut().filter_map(|it| it.on_mut(Course::Serving));
        let mut serving: Vec<&mut Life> = serving.collect();
        serving.sort_by_key(|life| life.registered);
        let needs = serving.iter().map(|life| (&life.found.id, &*life.found.depends_on));
        let order = shutdown_order(&needs.collect::<Vec<_>>());
        for (place, rank) in order.into_iter().zip((1..=serving.len()).rev()) {
            serving[place].rank = rank;
        }
    }

    /// Whether one that is to stop before this one has not been told to yet.
    fn stops_later(&self, life: &Life) -> bool {
        let mut lives = self.extensions.values().flat_map(|extension| &extension.lives);
        let told = |other: &Life| other.done != Some(C::Start) || other.under_way.is_some();
        life.rank > 0 && lives.any(|other| other.rank > life.rank && !told(other))
    }

    fn make(&mut self, desk: &mut StepRecorder, life: &ExtensionRef, next: Move) {
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
                let surface = |course| extension.on(course).map(|life| life.descriptors.clone());
                let (old, new) = (surface(Course::Serving), surface(Course::Rising));
                extension.promote(desk, self.activations);
                if old.is_some() && old != new {
                    self.renew_dependents(&life.id);
                }
            }
            Move::Forget => extension.lives.retain(|other| other.reference.generation != life.generation),
        }
    }

    /// What an extension offers has changed: those that depend on it begin anew.
    fn renew_dependents(&mut self, id: &ExtensionId) {
        for dependent in self.extensions.values_mut() {
            let found = dependent.found.clone().filter(|found| found.depends_on.contains(id));
            if let Some(found) = found.filter(|_| dependent.on(Course::Serving).is_some()) {
                dependent.rise(found, false);
            }
        }
    }

    /// Sends up again who fell for the sake of others, once nothing stands in the way.
    fn try_again(&mut self) -> bool {
        let waits = |it: &&Extension| it.waiting && it.on(Course::Rising).is_none();
        let waiting = self.extensions.values().filter(waits).filter_map(|it| it.found.clone());
        let again = waiting.filter(|found| self.phase == Phase::Running && self.blocked_by(found).is_none());
        let again: Vec<FoundExtension> = again.collect();
        for found in &again {
            self.extensions.entry(found.id.clone()).or_default().rise(found.clone(), false);
        }
        !again.is_empty()
    }
}
