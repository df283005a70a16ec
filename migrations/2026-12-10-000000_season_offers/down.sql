DROP INDEX ix_outbox_season_offer;

-- The program before would show what somebody has watched, and keep it. What waits is not sent: that program does not
-- withdraw it when the user turns notifications off.
UPDATE outbox SET state = 'suppressed'
  WHERE dedupe_key >= 'next_season:' AND dedupe_key < 'next_season;' AND state = 'queued';
UPDATE outbox SET body = ''
  WHERE dedupe_key >= 'next_season:' AND dedupe_key < 'next_season;' AND state NOT IN ('attempting','unknown');
UPDATE notices SET words = NULL WHERE matter >= 'next_season:' AND matter < 'next_season;';
