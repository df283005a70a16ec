DROP TABLE connection_history;
