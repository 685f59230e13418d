/** Number 5. */
