-- Whether the user asked to be notified of this title itself, which counts also while their notifications are off.
ALTER TABLE follows ADD COLUMN explicit INTEGER NOT NULL DEFAULT 0 CHECK (explicit IN (0, 1));
