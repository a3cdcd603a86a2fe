"""Where rows live."""
