/** Number 18. */
