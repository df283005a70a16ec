-- The previous program would show the options of an open vote to people with other caps.
UPDATE votes SET closed_at = closes_at WHERE checked_kind IS NOT NULL AND closed_at IS NULL;
UPDATE outbox SET state = 'suppressed'
  WHERE state = 'queued' AND id IN (
    SELECT vote_messages.outbox_id FROM vote_messages JOIN votes ON votes.id = vote_messages.vote_id
    WHERE votes.checked_kind IS NOT NULL
  );
ALTER TABLE votes DROP COLUMN winner;
ALTER TABLE votes DROP COLUMN checked_cap;
ALTER TABLE votes DROP COLUMN checked_kind;
ALTER TABLE votes DROP COLUMN reasons;
