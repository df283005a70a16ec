-- A delivery report updates the row of its message, so the reports themselves are not stored. The error code of a message
-- that did not arrive moves to the row of the message.
UPDATE outbox SET error = (
  SELECT json_object('code', error_code, 'meaning', NULL) FROM delivery_events
  WHERE provider_sid = outbox.provider_sid AND error_code IS NOT NULL ORDER BY status LIMIT 1)
WHERE state = 'accepted' AND delivery IN ('undelivered','failed','canceled');
DROP TABLE delivery_events;
