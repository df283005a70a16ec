-- Offers of next seasons, which mention what their user has watched. Their text is erased after a day.
CREATE INDEX ix_outbox_season_offer ON outbox(created_at)
  WHERE dedupe_key >= 'next_season:' AND dedupe_key < 'next_season;' AND body <> '';
