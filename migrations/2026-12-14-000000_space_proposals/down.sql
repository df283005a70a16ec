-- The program before would show what somebody has watched, and keep it.
UPDATE outbox SET state = 'suppressed'
  WHERE dedupe_key >= 'room_question:' AND dedupe_key < 'room_question;' AND state = 'queued';
UPDATE outbox SET body = ''
  WHERE dedupe_key >= 'room_question:' AND dedupe_key < 'room_question;' AND state NOT IN ('attempting','unknown');
-- It does not know this outcome.
UPDATE tool_call_items SET result = '"changed"' WHERE result = '"kept"';

DROP INDEX ix_outbox_about_viewing;
CREATE INDEX ix_outbox_season_offer ON outbox(created_at)
  WHERE dedupe_key >= 'next_season:' AND dedupe_key < 'next_season;' AND body <> '';
DROP TABLE kept_titles;
DROP TABLE space_proposal_answers;
DROP TABLE space_proposal_titles;
DROP TABLE space_proposals;
