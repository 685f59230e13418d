/** Number 24. */
