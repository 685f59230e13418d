/** Number 17. */
