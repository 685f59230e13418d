/** Number 7. */
