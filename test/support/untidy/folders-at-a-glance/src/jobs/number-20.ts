/** Number 20. */
