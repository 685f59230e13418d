/** Number 25. */
