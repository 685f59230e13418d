/** Number 14. */
