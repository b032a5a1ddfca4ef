//! Facts about extensions: found, rejected, removed, restarted, reported on, failed.

use std::mem::replace;

use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Act;
use holdfast_contract::ids::{ExtensionId, Generation, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::{
    ExtensionFaulted, ExtensionReported, ExtensionRetried, ExtensionState, FoundExtension, HealthReported,
    LifecycleCommand, LifecycleOutcome, SystemStarted,
};

use super::System;
use super::generation::{CommandInProgress, Extension, ExtensionGeneration, GenerationState, state_changed};
use super::supervision::{CrashCounter, RestartBackoff};
use crate::phase::{Accepted, Phase, unexpected};
use crate::step_recorder::StepRecorder;

impl System {
    /// The process has started: no generation of an earlier process is alive, but the numbers continue. A generation that was starting
    /// when an earlier process died is a suspect if its code was executing then, and one whose code ended it is quarantined.
    pub(super) fn start(&mut self, fact: &SystemStarted) {
        let died = replace(&mut self.phase, Phase::Running) == Phase::Running;
        self.running.clear();
        // Crashes that were counted without evidence do not count any more once there is evidence.
        let forgives = fact.last_good && !self.keeps_last_good;
        (self.keeps_last_good, self.inspects) = (fact.last_good, fact.inspects);
        let executing = |content: &Digest| fact.executing.as_ref().is_none_or(|all| all.contains(content));
        for extension in self.extensions.values_mut() {
            if forgives {
                extension.crashes = CrashCounter::default();
            }
            let starting = extension.in_state(GenerationState::Starting);
            let is_suspect = |it: &&ExtensionGeneration| died && it.is_busy() && executing(&it.found.digest);
            let mut contents = extension.generations.iter().map(|generation| generation.found.digest);
            let culprit = contents.find(|content| died && fact.crashed.contains(content));
            let crashes = match (culprit, starting.filter(is_suspect)) {
                (Some(content), _) => CrashCounter::caused_by(content),
                (None, Some(suspect)) => extension.crashes.with_crash_of(suspect.found.digest),
                (None, None) => extension.crashes,
            };
            *extension = Extension {
                last_generation: extension.last_generation,
                crashes,
                judging: extension.judging.take(),
                last_good: extension.last_good.take(),
                ..Extension::default()
            };
        }
    }

    /// Extensions were found new or changed. Content that is already in use is not started again, and quarantined content not at all.
    pub(super) fn found(&mut self, recorder: &mut StepRecorder, found: &[FoundExtension]) {
        for found in found {
            let extension = self.extensions.entry(found.id.clone()).or_default();
            let latest =
                extension.in_state(GenerationState::Starting).or(extension.in_state(GenerationState::Active));
            match (latest, extension.crashes.quarantine(found.digest)) {
                (Some(latest), _) if latest.found.digest == found.digest => extension.adopt(found),
                (None, Some(fault)) => {
                    extension.adopt(found);
                    self.rejected(recorder, &found.id, &fault);
                }
                _ => {
                    extension.restarts = RestartBackoff::default();
                    extension.start_generation(found.clone(), false);
                }
            }
        }
    }

    /// The user restarts an extension that is down, regardless of its faults, or reloads one that is up.
    pub(super) fn retried(&mut self, fact: &ExtensionRetried) -> Accepted {
        let keeps_last_good = self.keeps_last_good;
        let Some(extension) = self.extensions.get_mut(&fact.id).filter(|it| fact.reload || !it.is_up())
        else {
            return unexpected("no such extension is down");
        };
        extension.crashes = CrashCounter::default();
        extension.restarts = RestartBackoff::default();
        match extension.found.clone().filter(|_| extension.is_up()) {
            Some(found) => extension.start_generation(found, false),
            None => extension.restart(keeps_last_good),
        }
        Ok(())
    }

    /// The delay before a restart is over.
    pub(super) fn timer_fired(&mut self, timer: Seq) -> Accepted {
        let keeps_last_good = self.keeps_last_good;
        match self.extensions.values_mut().find(|it| it.timer == Some(timer)) {
            Some(extension) => extension.restart(keeps_last_good),
            None => return unexpected("no extension waits for this timer"),
        }
        Ok(())
    }

    /// An extension cannot be read. The active generation, if any, goes on, unless the profile refuses it.
    pub(super) fn rejected(&mut self, recorder: &mut StepRecorder, id: &ExtensionId, fault: &Fault) {
        let refused = fault.code == Code::PluginRefused;
        let keeps_last_good = self.keeps_last_good && !refused;
        let extension = self.extensions.entry(id.clone()).or_default();
        extension.fault = Some(fault.clone());
        extension.waiting = false;
        if !extension.is_up() {
            let generation = Generation(extension.last_generation);
            recorder.record(state_changed(id, generation, ExtensionState::Error, Some(fault.clone())));
            if keeps_last_good {
                extension.start_last_good(None, fault);
            }
        } else if refused {
            extension.found = None;
            for state in [GenerationState::Starting, GenerationState::Active] {
                self.stop_generation(recorder, id, state, Some(fault.clone()));
            }
        }
    }

    pub(super) fn removed(&mut self, id: &ExtensionId) {
        if let Some(extension) = self.extensions.get_mut(id) {
            extension.found = None;
            extension.fault = None;
            extension.judging = None;
            extension.last_good = None;
        }
    }

    /// A lane reports the outcome of a command.
    pub(super) fn command_reported(
        &mut self,
        recorder: &mut StepRecorder,
        fact: &ExtensionReported,
        cause: Option<Seq>,
    ) -> Accepted {
        let generation = self.generation(&fact.id, fact.generation)?;
        let reported = cause.map(|frame| CommandInProgress { command: fact.command, frame });
        if reported.is_none() || generation.in_progress != reported {
            return unexpected("this command is not in progress");
        }
        generation.in_progress = None;
        let starts = fact.command < LifecycleCommand::Stop;
        match &fact.outcome {
            LifecycleOutcome::Failed(fault) if starts => {
                // One that is stopping already has made no progress by it.
                let state = generation.state;
                if state != GenerationState::Stopping {
                    // The fault to report is that of the content in whose place the last good one was started.
                    let stands_in = generation.stands_in_for.clone();
                    let (content, fault) = (generation.found.digest, stands_in.unwrap_or(fault.clone()));
                    self.stop_generation(recorder, &fact.id, state, Some(fault.clone()));
                    if self.extensions.get(&fact.id).is_some_and(|extension| extension.timer.is_none()) {
                        self.fall_back(&fact.id, content, &fault);
                    }
                }
            }
            // What fails to stop is stopped all the same.
            LifecycleOutcome::Failed(_) | LifecycleOutcome::Done => generation.done = Some(fact.command),
            LifecycleOutcome::Loaded { descriptors, lives, alone } => {
                generation.descriptors = descriptors.clone();
                generation.has_lifecycle = *lives;
                generation.exclusive = *alone;
                generation.done = Some(fact.command);
                if let Some(extension) = self.extensions.get_mut(&fact.id) {
                    extension.learn_judging(GenerationState::Starting);
                }
            }
        }
        Ok(())
    }

    /// Content of an extension cannot be started: if nothing else of it is up, the last good content takes its place.
    fn fall_back(&mut self, id: &ExtensionId, content: Digest, fault: &Fault) {
        let may = self.keeps_last_good && self.phase == Phase::Running;
        if let Some(extension) = self.extensions.get_mut(id).filter(|it| may && !it.is_up()) {
            extension.start_last_good(Some(content), fault);
        }
    }

    /// A tool or hook of an extension failed. Too many failures roll the active generation back, or stop it.
    pub(super) fn faulted(&mut self, recorder: &mut StepRecorder, fact: &ExtensionFaulted) -> Accepted {
        let is_active = self.generation(&fact.id, fact.generation)?.state == GenerationState::Active;
        let Some(extension) = self.extensions.get_mut(&fact.id) else { return Ok(()) };
        if !is_active || extension.in_state(GenerationState::Starting).is_some() {
            return Ok(());
        }
        if !extension.faults.add(recorder.now()) {
            return Ok(());
        }
        let guards = extension.in_state(GenerationState::Active).is_some_and(ExtensionGeneration::guards);
        match extension.previous.take() {
            Some(found) => extension.start_generation(found, true),
            // Without it, what it judges would pass unjudged: it stays active, and its gates stay closed.
            None if guards => extension.fault = Some(fact.fault.clone()),
            None => {
                let fault = Some(fact.fault.clone());
                self.stop_generation(recorder, &fact.id, GenerationState::Active, fault);
            }
        }
        Ok(())
    }

    pub(super) fn health_reported(&mut self, recorder: &mut StepRecorder, fact: &HealthReported) -> Accepted {
        let is_active = self.generation(&fact.id, fact.generation)?.state == GenerationState::Active;
        if is_active && !fact.healthy {
            let message = format!("`{}` reported that it is unhealthy", fact.id);
            let fault = Fault::new(Code::ExtensionUnhealthy, message);
            self.stop_generation(recorder, &fact.id, GenerationState::Active, Some(fault));
        }
        Ok(())
    }

    /// The generation of this number, in any state.
    pub(super) fn generation(
        &mut self,
        id: &ExtensionId,
        number: Generation,
    ) -> Result<&mut ExtensionGeneration, Fault> {
        let generations = self.extensions.get_mut(id).map(|extension| &mut extension.generations);
        let mut generations = generations.into_iter().flatten();
        match generations.find(|generation| generation.reference.generation == number) {
            Some(generation) => Ok(generation),
            None => unexpected("the extension has no such generation"),
        }
    }

    /// Stops the generation in this state: in error if there is a fault. Another generation may stay active. An unhealthy one is
    /// restarted after a delay, and so is one whose process was killed while it started.
    pub(super) fn stop_generation(
        &mut self,
        recorder: &mut StepRecorder,
        id: &ExtensionId,
        state: GenerationState,
        fault: Option<Fault>,
    ) {
        let Some(extension) = self.extensions.get_mut(id) else { return };
        let Some(generation) = extension.in_state_mut(state) else { return };
        generation.state = GenerationState::Stopping;
        let number = generation.reference.generation;
        let stands_in_for = generation.stands_in_for.take();
        let restarts = |fault: &Fault| matches!(fault.code, Code::ExtensionUnhealthy | Code::ProcessKilled);
        let restart_at =
            if fault.as_ref().is_some_and(restarts) { extension.restarts.next(recorder.now()) } else { None };
        let new_state = if fault.is_some() { ExtensionState::Error } else { ExtensionState::Inactive };
        // What is wrong with the content that was found matters more than how the one in its place ended.
        extension.fault = fault.as_ref().and(stands_in_for).or(fault.clone());
        self.registry_stale |= state == GenerationState::Active;
        let mut changed = state_changed(id, number, new_state, fault);
        changed.again = restart_at;
        let decided_by = recorder.record(changed);
        extension.timer = restart_at.map(|_| decided_by);
        recorder.act(restart_at.map(|at| Act::SetTimer { decided_by, at }));
    }
}
