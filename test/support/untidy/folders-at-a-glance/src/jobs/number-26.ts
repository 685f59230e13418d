/** Number 26. */
