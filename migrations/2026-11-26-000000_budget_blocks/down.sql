DROP TABLE budget_blocks;
