/** Number 13. */
