-- Writes the conditions on a list of values as lists again. The stored rows do not depend on the text of a condition.

CREATE TABLE rewritten_conditions (
  step INTEGER NOT NULL PRIMARY KEY,
  list TEXT NOT NULL,
  comparisons TEXT NOT NULL
) STRICT;
INSERT INTO rewritten_conditions (list, comparisons) VALUES
  ('CHECK (status IN (''pending'',''active'',''blocked''))',
   'CHECK (status = ''pending'' OR status = ''active'' OR status = ''blocked'')'),
  ('CHECK (role IN (''admin'',''member''))', 'CHECK (role = ''admin'' OR role = ''member'')'),
  ('CHECK (can_add IN (0,1))', 'CHECK (can_add = 0 OR can_add = 1)'),
  ('CHECK (can_delete IN (0,1))', 'CHECK (can_delete = 0 OR can_delete = 1)'),
  ('CHECK (can_4k IN (0,1))', 'CHECK (can_4k = 0 OR can_4k = 1)'),
  ('CHECK (notify IN (0,1))', 'CHECK (notify = 0 OR notify = 1)'),
  ('CHECK (test IN (0,1))', 'CHECK (test = 0 OR test = 1)'),
  ('CHECK (end_reason IN (''idle'',''cleared'',''blocked'',''admin''))',
   'CHECK (end_reason = ''idle'' OR end_reason = ''cleared'' OR end_reason = ''blocked'' OR end_reason = ''admin'')'),
  ('CHECK (kind IN (''chat'',''confirm'',''deny'',''command''))',
   'CHECK (kind = ''chat'' OR kind = ''confirm'' OR kind = ''deny'' OR kind = ''command'')'),
  ('CHECK (state IN
    (''CREATED'',''IN_PROGRESS'',''WAITING_FOR_TOOLS'',''FAILED'',''ERROR'',''COMPLETED'',''CANCELED''))',
   'CHECK (state = ''CREATED'' OR state = ''IN_PROGRESS'' OR state = ''WAITING_FOR_TOOLS'' OR state = ''FAILED'' OR state = ''ERROR'' OR state = ''COMPLETED'' OR state = ''CANCELED'')'),
  ('CHECK (triage IN (''open'',''respond'',''skip''))',
   'CHECK (triage = ''open'' OR triage = ''respond'' OR triage = ''skip'')'),
  ('CHECK (state NOT IN (''COMPLETED'',''CANCELED'') OR finished_at IS NOT NULL)',
   'CHECK ((state <> ''COMPLETED'' AND state <> ''CANCELED'') OR finished_at IS NOT NULL)'),
  ('CHECK (finished_at IS NULL OR state IN (''COMPLETED'',''CANCELED'',''FAILED'',''ERROR''))',
   'CHECK (finished_at IS NULL OR state = ''COMPLETED'' OR state = ''CANCELED'' OR state = ''FAILED'' OR state = ''ERROR'')'),
  ('CHECK (channel IN (''twilio'',''console'',''local''))',
   'CHECK (channel = ''twilio'' OR channel = ''console'' OR channel = ''local'')'),
  ('CHECK (via IN (''webhook'',''fallback'',''recovery'',''local''))',
   'CHECK (via = ''webhook'' OR via = ''fallback'' OR via = ''recovery'' OR via = ''local'')'),
  ('CHECK (state IN (''pending'',''processing'',''completed'',''failed''))',
   'CHECK (state = ''pending'' OR state = ''processing'' OR state = ''completed'' OR state = ''failed'')'),
  ('CHECK (outcome IN (''replied'',''failed_notified'',''skipped''))',
   'CHECK (outcome = ''replied'' OR outcome = ''failed_notified'' OR outcome = ''skipped'')'),
  ('CHECK (carrier_word IN (''stop'',''start'',''help''))',
   'CHECK (carrier_word = ''stop'' OR carrier_word = ''start'' OR carrier_word = ''help'')'),
  ('CHECK (over_limit IN (0,1))', 'CHECK (over_limit = 0 OR over_limit = 1)'),
  ('CHECK (wants_answer IN (0,1))', 'CHECK (wants_answer = 0 OR wants_answer = 1)'),
  ('CHECK (authority IN (''certain'', ''ambiguous'', ''verified'', ''unverified''))',
   'CHECK (authority = ''certain'' OR authority = ''ambiguous'' OR authority = ''verified'' OR authority = ''unverified'')'),
  ('CHECK ((state IN (''completed'',''failed'')) = (outcome IS NOT NULL))',
   'CHECK ((state = ''completed'' OR state = ''failed'') = (outcome IS NOT NULL))'),
  ('CHECK (state IN (''started'',''complete'',''abandoned''))',
   'CHECK (state = ''started'' OR state = ''complete'' OR state = ''abandoned'')'),
  ('CHECK (brain IN (''model'',''keyword''))', 'CHECK (brain = ''model'' OR brain = ''keyword'')'),
  ('CHECK (type IN (''text'',''thinking'',''tool_call''))',
   'CHECK (type = ''text'' OR type = ''thinking'' OR type = ''tool_call'')'),
  ('CHECK (effect IN (''read'',''write'',''destructive''))',
   'CHECK (effect = ''read'' OR effect = ''write'' OR effect = ''destructive'')'),
  ('CHECK (state IN (''created'',''held'',''running'',''unknown'',''complete'',''error'',''canceled''))',
   'CHECK (state = ''created'' OR state = ''held'' OR state = ''running'' OR state = ''unknown'' OR state = ''complete'' OR state = ''error'' OR state = ''canceled'')'),
  ('CHECK (reconciled IN (0,1))', 'CHECK (reconciled = 0 OR reconciled = 1)'),
  ('CHECK (effect <> ''destructive'' OR state IN (''created'',''held'',''canceled'',''error'') OR confirmed_by IS NOT NULL)',
   'CHECK (effect <> ''destructive'' OR state = ''created'' OR state = ''held'' OR state = ''canceled'' OR state = ''error'' OR confirmed_by IS NOT NULL)'),
  ('CHECK (effect <> ''read'' OR state NOT IN (''held'',''unknown''))',
   'CHECK (effect <> ''read'' OR (state <> ''held'' AND state <> ''unknown''))'),
  ('CHECK (state NOT IN (''running'',''unknown'') OR started_at IS NOT NULL)',
   'CHECK ((state <> ''running'' AND state <> ''unknown'') OR started_at IS NOT NULL)'),
  ('CHECK (kind IN (''movie'',''series''))', 'CHECK (kind = ''movie'' OR kind = ''series'')'),
  ('CHECK (delete_files IN (0,1))', 'CHECK (delete_files = 0 OR delete_files = 1)'),
  ('CHECK (state IN (''held'',''running'',''unknown'',''complete'',''error'',''canceled''))',
   'CHECK (state = ''held'' OR state = ''running'' OR state = ''unknown'' OR state = ''complete'' OR state = ''error'' OR state = ''canceled'')'),
  ('CHECK (state NOT IN (''complete'',''error'') OR result IS NOT NULL)',
   'CHECK ((state <> ''complete'' AND state <> ''error'') OR result IS NOT NULL)'),
  ('CHECK (kind IN (''reply'',''confirm_prompt'',''notice''))',
   'CHECK (kind = ''reply'' OR kind = ''confirm_prompt'' OR kind = ''notice'')'),
  ('CHECK (state IN (''queued'',''attempting'',''unknown'',''accepted'',''failed'',''suppressed''))',
   'CHECK (state = ''queued'' OR state = ''attempting'' OR state = ''unknown'' OR state = ''accepted'' OR state = ''failed'' OR state = ''suppressed'')'),
  ('CHECK (delivery IN (''accepted'',''scheduled'',''queued'',''sending'',''sent'',''delivered'',''undelivered'',''failed'',''canceled'',''read''))',
   'CHECK (delivery = ''accepted'' OR delivery = ''scheduled'' OR delivery = ''queued'' OR delivery = ''sending'' OR delivery = ''sent'' OR delivery = ''delivered'' OR delivery = ''undelivered'' OR delivery = ''failed'' OR delivery = ''canceled'' OR delivery = ''read'')'),
  ('WHERE state IN (''queued'',''attempting'',''unknown'')',
   'WHERE state = ''queued'' OR state = ''attempting'' OR state = ''unknown'''),
  ('CHECK (kind IN (''join'',''delete''))', 'CHECK (kind = ''join'' OR kind = ''delete'')'),
  ('CHECK (item_kind IN (''movie'',''series''))', 'CHECK (item_kind = ''movie'' OR item_kind = ''series'')'),
  ('CHECK (state IN (''open'',''approved'',''denied'',''blocked'',''expired'',''withdrawn'',''replaced''))',
   'CHECK (state = ''open'' OR state = ''approved'' OR state = ''denied'' OR state = ''blocked'' OR state = ''expired'' OR state = ''withdrawn'' OR state = ''replaced'')'),
  ('CHECK (kind IN (''movie'',''season''))', 'CHECK (kind = ''movie'' OR kind = ''season'')'),
  ('CHECK (author IN (''user'',''assistant''))', 'CHECK (author = ''user'' OR author = ''assistant'')'),
  ('CHECK (state IN (''queued'',''adding'',''added'',''given_up''))',
   'CHECK (state = ''queued'' OR state = ''adding'' OR state = ''added'' OR state = ''given_up'')'),
  ('CHECK ((state IN (''queued'',''adding'')) = (next_try_at IS NOT NULL))',
   'CHECK ((state = ''queued'' OR state = ''adding'') = (next_try_at IS NOT NULL))'),
  ('CHECK (explicit IN (0, 1))', 'CHECK (explicit = 0 OR explicit = 1)'),
  ('CHECK (kind IN (''quality'',''alias'',''dislike'',''like'',''folder'',''schedule'',''other''))',
   'CHECK (kind = ''quality'' OR kind = ''alias'' OR kind = ''dislike'' OR kind = ''like'' OR kind = ''folder'' OR kind = ''schedule'' OR kind = ''other'')'),
  ('CHECK (state IN (''active'',''superseded'',''forgotten'',''suggested'',''dismissed''))',
   'CHECK (state = ''active'' OR state = ''superseded'' OR state = ''forgotten'' OR state = ''suggested'' OR state = ''dismissed'')'),
  ('CHECK (source IN (''said'',''operator'',''noticed''))',
   'CHECK (source = ''said'' OR source = ''operator'' OR source = ''noticed'')'),
  ('CHECK ((state IN (''active'',''suggested'')) = (ended_at IS NULL))',
   'CHECK ((state = ''active'' OR state = ''suggested'') = (ended_at IS NULL))'),
  ('CHECK (scope IN (''user'',''group'',''global''))',
   'CHECK (scope = ''user'' OR scope = ''group'' OR scope = ''global'')'),
  ('CHECK (response_type IN (''greeting'',''explanation'',''recommendation'',''opinion'',''action''))',
   'CHECK (response_type = ''greeting'' OR response_type = ''explanation'' OR response_type = ''recommendation'' OR response_type = ''opinion'' OR response_type = ''action'')'),
  ('CHECK (extracted_by IN (''model'',''code'',''operator''))',
   'CHECK (extracted_by = ''model'' OR extracted_by = ''code'' OR extracted_by = ''operator'')'),
  ('CHECK (for_everyone IN (''no'',''suggested'',''approved'',''refused''))',
   'CHECK (for_everyone = ''no'' OR for_everyone = ''suggested'' OR for_everyone = ''approved'' OR for_everyone = ''refused'')'),
  ('CHECK (state IN (''pending'',''done'',''skipped'',''repeated'',''erased''))',
   'CHECK (state = ''pending'' OR state = ''done'' OR state = ''skipped'' OR state = ''repeated'' OR state = ''erased'')'),
  ('CHECK (state NOT IN (''erased'',''skipped'',''repeated'') OR response_vec IS NULL)',
   'CHECK ((state <> ''erased'' AND state <> ''skipped'' AND state <> ''repeated'') OR response_vec IS NULL)'),
  ('WHERE kind IN (''write'', ''write_queued'', ''delete'')',
   'WHERE kind = ''write'' OR kind = ''write_queued'' OR kind = ''delete''');

-- Fails if a condition does not exist in the schema.
CREATE TEMP TABLE missing_conditions (condition TEXT CONSTRAINT condition_is_missing CHECK (condition IS NULL));
INSERT INTO missing_conditions SELECT comparisons FROM rewritten_conditions
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE instr(sql, comparisons) > 0 AND type <> 'trigger' AND name <> 'stream_events' AND name <> 'rewritten_conditions');
DROP TABLE missing_conditions;

CREATE TEMP TABLE rewritten_schema AS
WITH RECURSIVE rewritten(name, sql, step) AS (
  SELECT name, sql, 0 FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'trigger' AND name <> 'stream_events' AND name <> 'rewritten_conditions'
  UNION ALL
  SELECT name, replace(sql, comparisons, list), rewritten.step + 1
  FROM rewritten JOIN rewritten_conditions ON rewritten_conditions.step = rewritten.step + 1
)
SELECT name, sql FROM rewritten WHERE step = (SELECT max(step) FROM rewritten_conditions);

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = rewritten_schema.sql FROM rewritten_schema
WHERE sqlite_schema.name = rewritten_schema.name AND sqlite_schema.sql <> rewritten_schema.sql;

DROP TABLE rewritten_schema;
-- Also raises the version of the schema, so that every connection reads the schema again.
DROP TABLE rewritten_conditions;
PRAGMA writable_schema = RESET;
