/** Number 11. */
