/** Number 31. */
