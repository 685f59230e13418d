/** Number 28. */
