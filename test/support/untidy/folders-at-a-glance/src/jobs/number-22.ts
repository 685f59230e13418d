/** Number 22. */
