-- One index instead of two: a step has one attempt that is not abandoned. Its condition is the error, because an index
-- whose condition names the state is written again whenever the state changes.
UPDATE llm_steps SET error = '{"kind":"interrupted"}' WHERE state = 'abandoned' AND error IS NULL;
DROP INDEX ux_llm_open;
DROP INDEX ux_llm_done;
CREATE UNIQUE INDEX ux_llm_current ON llm_steps(turn_id, step) WHERE error IS NULL;
