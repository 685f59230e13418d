/** Number 29. */
