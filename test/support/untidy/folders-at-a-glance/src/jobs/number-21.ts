/** Number 21. */
