//! Blocks of the daily budget, which cover the model calls whose reservations are not synced.
//!
//! The first call of a run on a day opens a block, and syncs it. Later reservations need no sync of their own as long as
//! those since the last sync fit into the block. If the machine goes down before a clean stop has closed the block, it
//! counts as spent, because the reservations of calls that were made may be lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use diesel::prelude::*;

use super::daily_budget::{BudgetedCall, Day};
use crate::conversation::model_cost::{DailyBudget, ModelSpending};
use crate::store::codec::saturating_i64;
use crate::store::database::db::Durability;
use crate::store::database::log_syncs::LogSyncs;
use crate::store::schema::budget_blocks;
use crate::store::{Conn, boot};

/// A block is this part of the daily budget.
const BLOCKS_PER_BUDGET: u64 = 20;

/// Block of the current run. Clones share it.
#[derive(Debug, Clone)]
pub struct BudgetBlock(Arc<BudgetBlockInner>);

#[derive(Debug)]
struct BudgetBlockInner {
    syncs: LogSyncs,
    boot_id: Option<String>,
    state: Mutex<BlockState>,
}

#[derive(Debug, Default)]
struct BlockState {
    /// Day and size of the block that is stored and synced.
    open_block: Option<(Day, DailyBudget)>,
    /// Reservations whose commits are in progress.
    in_progress: ModelSpending,
    /// Reservations that were committed without a sync, at most since sync `syncs`.
    unsynced: ModelSpending,
    syncs: u64,
}

/// Durability of the reservation of a call. It is dropped after the commit.
#[derive(Debug)]
pub struct CallCover {
    block: BudgetBlock,
    day: Day,
    size: DailyBudget,
    kind: CoverKind,
}

#[derive(Debug, Clone, Copy)]
enum CoverKind {
    /// The budget has no limit, so nothing is lost with a reservation.
    Unlimited,
    /// The reservation opens the block of its day, or changes its size after the budget was changed.
    OpensBlock,
    /// The block has no room left before the next sync.
    OwnSync,
    /// The block covers this reservation.
    Block(ModelSpending),
}

impl BudgetBlock {
    /// Creates the block of this run. `boot_id` is the machine's current boot.
    pub fn new(syncs: LogSyncs, boot_id: Option<&str>) -> Self {
        let boot_id = boot_id.map(str::to_owned);
        Self(Arc::new(BudgetBlockInner { syncs, boot_id, state: Mutex::default() }))
    }

    /// Decides how the reservation of a call is committed under the current budget of a day.
    pub fn cover_call(&self, call: &BudgetedCall, budget: DailyBudget) -> CallCover {
        let size = budget.fraction(BLOCKS_PER_BUDGET);
        let kind = self.choose_cover(&call.day, size, call.estimate.total());
        CallCover { block: self.clone(), day: call.day.clone(), size, kind }
    }

    fn choose_cover(&self, day: &Day, size: DailyBudget, spending: ModelSpending) -> CoverKind {
        if !size.is_limited() {
            return CoverKind::Unlimited;
        }
        let mut state = self.lock_synced_state();
        let is_open = |(open_day, open_size): &(Day, DailyBudget)| open_day == day && *open_size == size;
        if !state.open_block.as_ref().is_some_and(is_open) {
            return CoverKind::OpensBlock;
        }
        if !size.has_room(state.in_progress.plus(state.unsynced), spending) {
            return CoverKind::OwnSync;
        }
        state.in_progress = state.in_progress.plus(spending);
        CoverKind::Block(spending)
    }

    /// Locks the state, and forgets the reservations that a later sync has covered.
    fn lock_synced_state(&self) -> MutexGuard<'_, BlockState> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let syncs = self.0.syncs.count();
        if syncs > state.syncs {
            state.unsynced = ModelSpending::default();
            state.syncs = syncs;
        }
        state
    }
}

impl CallCover {
    pub fn durability(&self) -> Durability {
        match self.kind {
            CoverKind::OpensBlock | CoverKind::OwnSync => Durability::Synced,
            CoverKind::Unlimited | CoverKind::Block(_) => Durability::Unsynced,
        }
    }

    /// Returns the block that the reservation opens, to be stored in the same transaction.
    pub fn new_block(&self) -> Option<NewBlock> {
        match self.kind {
            CoverKind::OpensBlock => {
                let boot_id = self.block.0.boot_id.clone();
                Some(NewBlock { day: self.day.clone(), size: self.size, boot_id })
            }
            CoverKind::Unlimited | CoverKind::OwnSync | CoverKind::Block(_) => None,
        }
    }

    /// Records that the reservation is committed.
    pub fn commit(self) {
        if let CoverKind::OpensBlock = self.kind {
            self.block.lock_synced_state().open_block = Some((self.day.clone(), self.size));
        }
    }
}

impl Drop for CallCover {
    fn drop(&mut self) {
        // Without a result of the commit, the reservation may be stored.
        if let CoverKind::Block(spending) = self.kind {
            let mut state = self.block.lock_synced_state();
            state.in_progress = state.in_progress.minus(spending);
            state.unsynced = state.unsynced.plus(spending);
        }
    }
}

/// Block to store.
#[derive(Debug, Clone)]
pub struct NewBlock {
    day: Day,
    size: DailyBudget,
    boot_id: Option<String>,
}

/// Stores the block of this run, or its new size, and deletes the blocks of earlier days.
pub fn open_block(conn: &mut Conn, NewBlock { day, size, boot_id }: &NewBlock) -> QueryResult<()> {
    diesel::delete(budget_blocks::table.filter(budget_blocks::day.lt(day.as_str()))).execute(conn)?;
    let limits = (
        budget_blocks::tokens.eq(saturating_i64(size.tokens.unwrap_or(0))),
        budget_blocks::cost_micros.eq(saturating_i64(size.cost.unwrap_or(0))),
    );
    diesel::insert_into(budget_blocks::table)
        .values((
            budget_blocks::day.eq(day.as_str()),
            budget_blocks::epoch.eq(boot::CURRENT_EPOCH),
            limits,
            budget_blocks::boot_id.eq(boot_id),
        ))
        .on_conflict((budget_blocks::day, budget_blocks::epoch))
        .do_update()
        .set(limits)
        .execute(conn)
        .map(drop)
}

/// Deletes the blocks that earlier runs opened since the machine's current boot: their reservations are not lost. An
/// unknown boot matches no block.
pub fn discard_blocks_of_boot(conn: &mut Conn, boot_id: Option<&str>) -> QueryResult<()> {
    diesel::delete(budget_blocks::table.filter(budget_blocks::boot_id.eq(boot_id))).execute(conn).map(drop)
}

/// Deletes the blocks of this run, whose reservations are all on disk or about to be synced.
pub(in crate::store) fn close_blocks(conn: &mut Conn) -> QueryResult<()> {
    diesel::delete(budget_blocks::table.filter(budget_blocks::epoch.eq(boot::CURRENT_EPOCH)))
        .execute(conn)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::conversation::model_cost::CostEstimate;
    use crate::conversation::transcript::UserId;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    /// Budget whose block has 150 tokens.
    const BUDGET: DailyBudget = DailyBudget { tokens: Some(3_000), cost: None };

    fn call(tokens: u64) -> BudgetedCall {
        let input = ModelSpending { tokens, cost: 0 };
        let estimate = CostEstimate { input, output: ModelSpending::default() };
        BudgetedCall { user: UserId(1), day: Day::from_timestamp(NOW, &TimeZone::UTC), estimate }
    }

    fn open_new_block(syncs: &LogSyncs) -> BudgetBlock {
        let block = BudgetBlock::new(syncs.clone(), None);
        let cover = block.cover_call(&call(1), BUDGET);
        assert_eq!((cover.durability(), cover.new_block().is_some()), (Durability::Synced, true));
        cover.commit();
        block
    }

    #[test]
    fn block_is_opened_by_the_first_committed_call() {
        let block = BudgetBlock::new(LogSyncs::default(), None);
        for _ in 0..2 {
            // The commit of this reservation fails.
            assert!(block.cover_call(&call(1), BUDGET).new_block().is_some());
        }
        block.cover_call(&call(1), BUDGET).commit();
        let cover = block.cover_call(&call(1), BUDGET);
        assert_eq!((cover.durability(), cover.new_block().is_some()), (Durability::Unsynced, false));
    }

    #[test]
    fn reservations_beyond_the_block_are_synced() {
        let block = open_new_block(&LogSyncs::default());
        let running = block.cover_call(&call(100), BUDGET);
        assert_eq!(running.durability(), Durability::Unsynced);
        assert_eq!(block.cover_call(&call(51), BUDGET).durability(), Durability::Synced);
        running.commit();
        assert_eq!(block.cover_call(&call(51), BUDGET).durability(), Durability::Synced);
        assert_eq!(block.cover_call(&call(50), BUDGET).durability(), Durability::Unsynced);
    }

    #[test]
    fn sync_makes_room_for_committed_reservations_only() {
        let (syncs, log) = (LogSyncs::default(), File::open("Cargo.toml").unwrap());
        let block = open_new_block(&syncs);
        block.cover_call(&call(100), BUDGET).commit();
        let running = block.cover_call(&call(50), BUDGET);
        syncs.sync(&log).unwrap();
        assert_eq!(block.cover_call(&call(101), BUDGET).durability(), Durability::Synced);
        drop(running);
        assert_eq!(block.cover_call(&call(101), BUDGET).durability(), Durability::Synced);
        syncs.sync(&log).unwrap();
        assert_eq!(block.cover_call(&call(150), BUDGET).durability(), Durability::Unsynced);
    }

    #[test]
    fn budget_without_limits_needs_no_block() {
        let block = BudgetBlock::new(LogSyncs::default(), None);
        let cover = block.cover_call(&call(1_000_000), DailyBudget::default());
        assert_eq!((cover.durability(), cover.new_block().is_some()), (Durability::Unsynced, false));
    }

    #[test]
    fn changed_budget_resizes_the_block_in_a_synced_commit() {
        let mut conn = scratch();
        boot::recover_interrupted_work(&mut conn, NOW).unwrap();
        let block = BudgetBlock::new(LogSyncs::default(), None);
        for budget in [BUDGET, DailyBudget { tokens: Some(1_000), cost: None }] {
            let cover = block.cover_call(&call(1), budget);
            assert_eq!(cover.durability(), Durability::Synced);
            open_block(&mut conn, &cover.new_block().unwrap()).unwrap();
            cover.commit();
            assert!(block.cover_call(&call(1), budget).new_block().is_none());
        }
        let tokens: Vec<i64> = budget_blocks::table.select(budget_blocks::tokens).load(&mut conn).unwrap();
        assert_eq!(tokens, [50]);
    }

    fn count_blocks(conn: &mut Conn) -> i64 {
        budget_blocks::table.count().get_result(conn).unwrap()
    }

    #[test]
    fn clean_stop_closes_only_the_block_of_its_run() {
        let mut conn = scratch();
        let block = BudgetBlock::new(LogSyncs::default(), None);
        let new_block = block.cover_call(&call(1), BUDGET).new_block().unwrap();
        for blocks in 1..3 {
            boot::recover_interrupted_work(&mut conn, NOW).unwrap();
            open_block(&mut conn, &new_block).unwrap();
            open_block(&mut conn, &new_block).unwrap();
            assert_eq!(count_blocks(&mut conn), blocks);
        }
        boot::record_clean_shutdown(&mut conn, NOW).unwrap();
        assert_eq!(count_blocks(&mut conn), 1);
    }

    #[test]
    fn block_survives_only_another_boot_of_the_machine() {
        let mut conn = scratch();
        for boot_id in [Some("first boot"), None] {
            boot::recover_interrupted_work(&mut conn, NOW).unwrap();
            let block = BudgetBlock::new(LogSyncs::default(), boot_id);
            open_block(&mut conn, &block.cover_call(&call(1), BUDGET).new_block().unwrap()).unwrap();
        }
        discard_blocks_of_boot(&mut conn, None).unwrap();
        discard_blocks_of_boot(&mut conn, Some("second boot")).unwrap();
        assert_eq!(count_blocks(&mut conn), 2);
        discard_blocks_of_boot(&mut conn, Some("first boot")).unwrap();
        assert_eq!(count_blocks(&mut conn), 1);
    }
}
