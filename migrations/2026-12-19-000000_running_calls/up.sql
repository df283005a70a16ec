-- The usage contains the input of a model call from its start, so that an interrupted call needs no reservation to be
-- charged. Reservations are kept in memory, because they end with the program.
INSERT INTO usage (day, user_id, model_calls, tokens_in, cost_micros)
SELECT day, user_id, count(*), sum(tokens_in), sum(cost_in_micros) FROM reservations WHERE true GROUP BY day, user_id
ON CONFLICT (day, user_id) DO UPDATE SET model_calls = model_calls + excluded.model_calls,
  tokens_in = tokens_in + excluded.tokens_in, cost_micros = cost_micros + excluded.cost_micros;
DROP TABLE reservations;
