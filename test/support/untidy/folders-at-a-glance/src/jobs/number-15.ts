/** Number 15. */
