/** Number 23. */
