DROP TABLE response_terms;
DROP TABLE response_words;
DROP TABLE agent_responses;
DROP TABLE memory_group_members;
DROP TABLE memory_groups;
DROP TABLE user_facts;
