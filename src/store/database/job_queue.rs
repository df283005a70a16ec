//! Queue of the writer. Jobs run in the order of their requests, except that work which is acknowledged to its sender
//! overtakes other work that does not fit into the next commit.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};

use super::db::DbError;
use super::write_job::WriteJob;

/// Maximum numbers of jobs that share one commit, and therefore one disk sync. The limit of internal jobs is
/// low, so that a message that arrives during the commit is acknowledged soon.
const MAX_ACKNOWLEDGED_PER_COMMIT: usize = 192;
const MAX_INTERNAL_PER_COMMIT: usize = 64;
/// Maximum number of waiting jobs of each kind. When as many wait for an acknowledgment, webhooks are asked to retry
/// later.
const CAPACITY: usize = 1024;

/// Kind of a job, which decides which others it overtakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobKind {
    /// Work that is acknowledged to its sender. It overtakes internal work.
    Acknowledged,
    /// Work that overtakes nothing.
    Internal,
    /// Work that overtakes nothing, and that nothing overtakes.
    InOrder,
}

struct QueuedJob {
    job: Box<dyn WriteJob>,
    kind: JobKind,
    /// Permit of the place in the queue, which is released when the job is taken.
    _place: OwnedSemaphorePermit,
}

/// Sending half of the queue.
#[derive(Clone)]
pub(super) struct JobSender {
    jobs: mpsc::UnboundedSender<QueuedJob>,
    acknowledged_places: Arc<Semaphore>,
    internal_places: Arc<Semaphore>,
}

/// Receiving half of the queue, which the writer owns.
pub(super) struct JobReceiver {
    received: mpsc::UnboundedReceiver<QueuedJob>,
    /// Received jobs, in the order of their requests.
    waiting: VecDeque<QueuedJob>,
    acknowledged_places: Arc<Semaphore>,
    internal_places: Arc<Semaphore>,
}

/// Reserved place in the queue.
pub(super) struct ReservedPlace<'a> {
    sender: &'a JobSender,
    place: OwnedSemaphorePermit,
}

/// Creates an empty queue.
pub(super) fn open_queue() -> (JobSender, JobReceiver) {
    let (jobs, received) = mpsc::unbounded_channel();
    let [acknowledged_places, internal_places] = [(); 2].map(|()| Arc::new(Semaphore::new(CAPACITY)));
    let sender = JobSender {
        jobs,
        acknowledged_places: acknowledged_places.clone(),
        internal_places: internal_places.clone(),
    };
    (sender, JobReceiver { received, waiting: VecDeque::new(), acknowledged_places, internal_places })
}

impl JobSender {
    /// Queues internal work once there is a place for it.
    pub(super) async fn send(&self, job: Box<dyn WriteJob>) -> Result<(), DbError> {
        let place = self.reserve().await?.place;
        self.queue(job, JobKind::Internal, place)
    }

    /// Queues work that is acknowledged to its sender; [`DbError::Busy`] if there is no place for it.
    pub(super) fn send_acknowledged(&self, job: Box<dyn WriteJob>) -> Result<(), DbError> {
        let place = self.acknowledged_places.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => DbError::Busy,
            TryAcquireError::Closed => DbError::Closed,
        })?;
        self.queue(job, JobKind::Acknowledged, place)
    }

    /// Waits for a place for internal work.
    pub(super) async fn reserve(&self) -> Result<ReservedPlace<'_>, DbError> {
        let place = self.internal_places.clone().acquire_owned().await.map_err(|_| DbError::Closed)?;
        Ok(ReservedPlace { sender: self, place })
    }

    fn queue(
        &self,
        job: Box<dyn WriteJob>,
        kind: JobKind,
        place: OwnedSemaphorePermit,
    ) -> Result<(), DbError> {
        self.jobs.send(QueuedJob { job, kind, _place: place }).map_err(|_| DbError::Closed)
    }
}

impl ReservedPlace<'_> {
    /// Queues work that runs after all work requested before, and before all work requested later.
    pub(super) fn send_in_order(self, job: Box<dyn WriteJob>) -> Result<(), DbError> {
        self.sender.queue(job, JobKind::InOrder, self.place)
    }
}

impl JobReceiver {
    /// Waits for work, and takes the jobs of the next commit. There are none once the queue is closed and empty.
    pub(super) fn take_jobs(&mut self) -> Vec<Box<dyn WriteJob>> {
        if self.waiting.is_empty() {
            self.waiting.extend(self.received.blocking_recv());
        }
        while let Ok(job) = self.received.try_recv() {
            self.waiting.push_back(job);
        }
        // Nothing after the first job in order is taken, because later jobs do not overtake it.
        let in_order = self.waiting.iter().position(|queued| queued.kind == JobKind::InOrder);
        let mut later = self.waiting.split_off(in_order.map_or(self.waiting.len(), |position| position + 1));
        let (mut acknowledged, mut internal) = (0, 0);
        let (mut jobs, mut left) = (Vec::new(), VecDeque::new());
        for queued in self.waiting.drain(..) {
            let has_room = match queued.kind {
                JobKind::Acknowledged => acknowledged < MAX_ACKNOWLEDGED_PER_COMMIT,
                JobKind::Internal => internal < MAX_INTERNAL_PER_COMMIT,
                JobKind::InOrder => left.is_empty(),
            };
            if !has_room {
                left.push_back(queued);
                continue;
            }
            match queued.kind {
                JobKind::Acknowledged => acknowledged += 1,
                JobKind::Internal | JobKind::InOrder => internal += 1,
            }
            jobs.push(queued.job);
        }
        left.append(&mut later);
        self.waiting = left;
        jobs
    }

    /// Accepts no further jobs. Queued jobs can still be taken.
    pub(super) fn close(&mut self) {
        self.received.close();
        self.acknowledged_places.close();
        self.internal_places.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::write_job::{Durability, JobFailed};
    use super::*;
    use crate::store::Conn;

    /// Job that adds its name to a list when it is answered.
    struct NamedJob(String, Arc<Mutex<Vec<String>>>);

    impl WriteJob for NamedJob {
        fn run(&mut self, _conn: &mut Conn) -> Result<(), JobFailed> {
            Ok(())
        }

        fn drop_result(&mut self) {}

        fn durability(&self) -> Durability {
            Durability::Unsynced
        }

        fn answer(self: Box<Self>, _committed: Result<(), String>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    struct Queue {
        sender: JobSender,
        receiver: JobReceiver,
        taken: Arc<Mutex<Vec<String>>>,
    }

    impl Queue {
        fn open() -> Self {
            let (sender, receiver) = open_queue();
            Self { sender, receiver, taken: Arc::default() }
        }

        fn job(&self, name: &str) -> Box<NamedJob> {
            Box::new(NamedJob(name.to_owned(), self.taken.clone()))
        }

        fn send_internal(&self, name: &str) {
            let place = self.sender.internal_places.clone().try_acquire_owned().unwrap();
            self.sender.queue(self.job(name), JobKind::Internal, place).unwrap();
        }

        /// Queues internal work with the names `0`, `1` and so on.
        fn send_numbered(&self, count: usize) {
            (0..count).for_each(|number| self.send_internal(&number.to_string()));
        }

        fn send_in_order(&self, name: &str) {
            let place = self.sender.internal_places.clone().try_acquire_owned().unwrap();
            ReservedPlace { sender: &self.sender, place }.send_in_order(self.job(name)).unwrap();
        }

        fn send_acknowledged(&self, name: &str) -> Result<(), DbError> {
            self.sender.send_acknowledged(self.job(name))
        }

        /// Takes the jobs of a commit, and returns their names.
        fn take(&mut self) -> Vec<String> {
            self.receiver.take_jobs().into_iter().for_each(|job| job.answer(Ok(())));
            std::mem::take(&mut *self.taken.lock().unwrap())
        }
    }

    #[test]
    fn acknowledged_work_overtakes_much_internal_work() {
        let mut queue = Queue::open();
        queue.send_numbered(MAX_INTERNAL_PER_COMMIT + 1);
        queue.send_acknowledged("message").unwrap();
        let first = queue.take();
        assert_eq!(first.len(), MAX_INTERNAL_PER_COMMIT + 1);
        assert_eq!(first.last().unwrap(), "message");
        assert_eq!(queue.take(), [MAX_INTERNAL_PER_COMMIT.to_string()]);
    }

    #[test]
    fn nothing_overtakes_work_in_order() {
        let mut queue = Queue::open();
        queue.send_internal("before");
        queue.send_in_order("clock");
        queue.send_acknowledged("after").unwrap();
        assert_eq!(queue.take(), ["before", "clock"]);
        assert_eq!(queue.take(), ["after"]);
    }

    #[test]
    fn work_in_order_waits_for_all_work_before_it() {
        let mut queue = Queue::open();
        queue.send_numbered(MAX_INTERNAL_PER_COMMIT + 1);
        queue.send_in_order("clock");
        assert_eq!(queue.take().len(), MAX_INTERNAL_PER_COMMIT);
        assert_eq!(queue.take(), [MAX_INTERNAL_PER_COMMIT.to_string(), "clock".to_owned()]);
    }

    #[test]
    fn queue_full_of_internal_work_accepts_acknowledged_work() {
        let queue = Queue::open();
        queue.send_numbered(CAPACITY);
        assert!(queue.sender.internal_places.try_acquire().is_err());
        assert!((0..CAPACITY).all(|_| queue.send_acknowledged("message").is_ok()));
        assert!(matches!(queue.send_acknowledged("message"), Err(DbError::Busy)));
    }

    #[test]
    fn closed_queue_still_hands_over_its_jobs() {
        let mut queue = Queue::open();
        queue.send_internal("queued");
        queue.receiver.close();
        assert!(matches!(queue.send_acknowledged("late"), Err(DbError::Closed)));
        assert_eq!(queue.take(), ["queued"]);
        assert!(queue.take().is_empty());
    }
}
