/** Number 8. */
