-- The turns of the prompt's window, without a look at each row.
CREATE INDEX ix_turn_window ON turns(conversation_id, id) WHERE finished_at IS NOT NULL AND state <> 'CANCELED';
-- Whether a conversation mentions what somebody has watched. Almost no turn does.
CREATE INDEX ix_turn_viewing_conversation ON turns(conversation_id) WHERE about_viewing = 1;
