/** Number 16. */
