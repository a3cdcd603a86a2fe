"""Where rows live: who reads and writes them, who counts them here or on Spark, and who answers SQL about them."""
