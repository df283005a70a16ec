DROP INDEX ix_turn_viewing_conversation;
DROP INDEX ix_turn_window;
