DROP TABLE title_attributions;
