DROP INDEX ux_llm_current;
CREATE UNIQUE INDEX ux_llm_done ON llm_steps(turn_id, step) WHERE state = 'complete';
CREATE UNIQUE INDEX ux_llm_open ON llm_steps(turn_id) WHERE state = 'started';
