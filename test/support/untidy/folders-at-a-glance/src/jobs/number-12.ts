/** Number 12. */
