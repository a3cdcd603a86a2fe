"""The collector of a survey: reports come in, one for each token; and those who send them."""
