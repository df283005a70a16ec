DROP TABLE arr_cursors;
DROP TABLE notices;
DROP TABLE arr_events;
DROP TABLE follows;
DROP TABLE requests;
ALTER TABLE tool_call_items DROP COLUMN extent;
ALTER TABLE users DROP COLUMN quiet_to;
ALTER TABLE users DROP COLUMN quiet_from;
ALTER TABLE users DROP COLUMN notify;
