/** Number 27. */
