/** Number 6. */
